//! Lists of submissions and entities: filters, orders, pages.

use jiff::Timestamp;

use super::{StoredEntity, StoredSubmission};
use crate::decision::{BundleKind, SubmissionStatus, Visibility};
use crate::store::KeyValue;

/// Where one row stands in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its value of the key that orders the list.
    pub value: KeyValue,
    /// Its id.
    pub id: String,
}

/// Whether to list submissions whose entity is archived, as it stands now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ArchivedFilter {
    /// Leave them out.
    #[default]
    Exclude,
    /// Only them.
    Only,
    /// Them and the others.
    Include,
}

/// Which submissions. What is `None` or empty lets every one pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubmissionFilter {
    /// Only what this person may see: its own. `None`: an administrator asks.
    pub viewer: Option<String>,
    /// Only those with one of these. Empty means every status but `deleted`.
    pub statuses: Vec<SubmissionStatus>,
    /// Only those of one of these kinds.
    pub kinds: Vec<BundleKind>,
    /// Only those of this submitter.
    pub submitter: String,
    /// What to do with those whose entity is archived.
    pub archived: ArchivedFilter,
    /// Only those of this entity.
    pub entity_id: String,
    /// Only those with this bundle hash, in any letter case.
    pub bundle_sha256: String,
    /// Only those whose id, name, version, description or submitter holds this text, in any letter case.
    pub text: String,
    /// Only those received at or after this time.
    pub start: Option<Timestamp>,
    /// Only those received before this time.
    pub end: Option<Timestamp>,
}

/// What a list of submissions is ordered by. Equal ones are ordered by id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubmissionKey {
    /// When it was received.
    CreateTime,
    /// When it last changed.
    UpdateTime,
    /// Its name.
    Name,
    /// Who uploaded it.
    Submitter,
    /// What it is, by name.
    Kind,
    /// Its verdict, by name.
    Status,
    /// Size of the archive.
    FileSize,
}

impl SubmissionKey {
    /// Every key with the name that `order_by` has for it.
    pub const ALL: [(&'static str, Self); 7] = [
        ("create_time", Self::CreateTime),
        ("update_time", Self::UpdateTime),
        ("name", Self::Name),
        ("submitter", Self::Submitter),
        ("kind", Self::Kind),
        ("status", Self::Status),
        ("file_size", Self::FileSize),
    ];
}

/// One page of submissions.
#[derive(Clone, Debug)]
pub struct SubmissionQuery {
    /// Whose.
    pub tenant: String,
    /// Which of them.
    pub filter: SubmissionFilter,
    /// What they are ordered by.
    pub key: SubmissionKey,
    /// Whether larger ones come first.
    pub is_descending: bool,
    /// Where the page before ended; `None` asks for the first.
    pub after: Option<Place>,
    /// How many at most.
    pub limit: usize,
    /// Count no further than this, for who only shows that there are more; one more than that is told then. `None` counts
    /// all of them.
    pub count_max: Option<u64>,
}

/// A submission beside the live state of its entity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedSubmission {
    /// The row.
    pub submission: StoredSubmission,
    /// Who can see the entity now; `None` when it was deleted.
    pub visibility: Option<Visibility>,
    /// Whether its bytes are the live ones.
    pub is_live: bool,
}

/// The answer to a [`SubmissionQuery`], of one moment.
#[derive(Clone, Debug)]
pub struct SubmissionPage {
    /// In the order asked for.
    pub submissions: Vec<ListedSubmission>,
    /// Where the next page begins; `None` when this is the last.
    pub next: Option<Place>,
    /// How many pass the filter, over all pages. Of a search for a text at most [`SEARCHED_MAX`] are counted; one more
    /// stands for any number above.
    pub total: u64,
}

/// As many hits of a text are counted.
pub const SEARCHED_MAX: u64 = 1_000;

/// Which entities. What is `None` or empty lets every one pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntityFilter {
    /// Only what this person may see: approved ones, and its own in any state. `None`: an administrator asks.
    pub viewer: Option<String>,
    /// Only those of one of these kinds.
    pub kinds: Vec<BundleKind>,
    /// Only those with one of these. Empty means all but archived ones.
    pub visibilities: Vec<Visibility>,
    /// Only those of this owner.
    pub owner: String,
    /// Only those whose name, or description of the live version, holds this text, in any letter case.
    pub text: String,
}

/// What a list of entities is ordered by. Equal ones are ordered by id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntityKey {
    /// When it was first submitted.
    CreateTime,
    /// When it last changed.
    UpdateTime,
    /// Its name.
    Name,
    /// Who owns it.
    Owner,
    /// What it is, by name.
    Kind,
    /// Who can see it, by name.
    Visibility,
    /// Size of the live archive; 0 when nothing is live.
    FileSize,
}

impl EntityKey {
    /// Every key with the name that `order_by` has for it.
    pub const ALL: [(&'static str, Self); 7] = [
        ("create_time", Self::CreateTime),
        ("update_time", Self::UpdateTime),
        ("name", Self::Name),
        ("owner", Self::Owner),
        ("kind", Self::Kind),
        ("visibility", Self::Visibility),
        ("file_size", Self::FileSize),
    ];
}

/// One page of entities.
#[derive(Clone, Debug)]
pub struct EntityQuery {
    /// Whose.
    pub tenant: String,
    /// Which of them.
    pub filter: EntityFilter,
    /// What they are ordered by.
    pub key: EntityKey,
    /// Whether larger ones come first.
    pub is_descending: bool,
    /// Where the page before ended; `None` asks for the first.
    pub after: Option<Place>,
    /// How many at most.
    pub limit: usize,
}

/// An entity beside the submissions it points to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedEntity {
    /// The row.
    pub entity: StoredEntity,
    /// The submission whose bytes are live.
    pub live: Option<StoredSubmission>,
    /// The newest submission.
    pub latest: Option<StoredSubmission>,
}

/// The answer to an [`EntityQuery`], of one moment.
#[derive(Clone, Debug)]
pub struct EntityPage {
    /// In the order asked for.
    pub entities: Vec<ListedEntity>,
    /// Where the next page begins; `None` when this is the last.
    pub next: Option<Place>,
    /// How many pass the filter, over all pages.
    pub total: u64,
}
