//! Interceptors in the database.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use sqlx::Error;

use super::database::Transaction;
use super::rows::{check_indexed, microseconds, timestamp};
use super::{Row, SqlStore, Statement};
use crate::store::{InterceptorStore, NewInterceptor, StoreError, StoredInterceptor, StoredInterceptors};

const COLUMNS: &str = "sequence, tenant, id, creator, create_time_us, definition";
const REVISION: &str = "SELECT revision FROM interceptor_revision WHERE only_row = 1";

impl SqlStore {
    async fn raise_revision(&self, write: &mut Transaction<'_>) -> Result<(), StoreError> {
        let raise = "UPDATE interceptor_revision SET revision = revision + 1 WHERE only_row = 1";
        write.run(Statement::new(raise)).await.map(|_| ())
    }

    async fn revision_now(&self) -> Result<i64, StoreError> {
        let row = self.database.row(Statement::new(REVISION)).await?;
        self.read(row.map_or(Err(Error::RowNotFound), |row| row.number("revision")))
    }

    async fn load_now(&self) -> Result<StoredInterceptors, StoreError> {
        // One transaction, so that the revision is that of the rows.
        let mut read = self.database.read().await?;
        let revision = read.number(Statement::new(REVISION), "revision").await?;
        let all = Statement::new(format!("SELECT {COLUMNS} FROM interceptor ORDER BY sequence"));
        let interceptors = self.read_all(&read.rows(all).await?, stored)?;
        Ok(StoredInterceptors { revision, interceptors })
    }

    async fn add_now(&self, new: NewInterceptor) -> Result<StoredInterceptor, StoreError> {
        check_indexed(&[("interceptor.tenant", &new.tenant), ("interceptor.id", &new.id)])?;
        let mut write = self.database.write().await?;
        let insert = Statement::new(format!(
            "INSERT INTO interceptor (tenant, id, creator, create_time_us, definition) VALUES (?, ?, ?, ?, ?) \
             ON CONFLICT (tenant, id) DO NOTHING RETURNING {COLUMNS}"
        ))
        .bind(&new.tenant)
        .bind(&new.id)
        .bind(&new.creator)
        .bind(microseconds(new.created))
        .bind(&new.definition);
        let Some(row) = write.row(insert).await? else {
            return Err(StoreError::AlreadyExists { id: new.id });
        };
        let added = self.read(stored(&row))?;
        self.raise_revision(&mut write).await?;
        write.commit().await?;
        Ok(added)
    }

    async fn remove_now(&self, tenant: &str, ids: &[String]) -> Result<Vec<StoredInterceptor>, StoreError> {
        let mut write = self.database.write().await?;
        // The same order in every process: two that remove the same ones do not wait for each other in a circle.
        let mut ids: Vec<&String> = ids.iter().collect();
        ids.sort_unstable();
        let mut removed = Vec::new();
        for id in ids {
            let delete = Statement::new(format!(
                "DELETE FROM interceptor WHERE tenant = ? AND id = ? RETURNING {COLUMNS}"
            ))
            .bind(tenant)
            .bind(id);
            if let Some(row) = write.row(delete).await? {
                removed.push(self.read(stored(&row))?);
            }
        }
        if removed.is_empty() {
            write.rollback().await?;
        } else {
            self.raise_revision(&mut write).await?;
            write.commit().await?;
        }
        removed.sort_by_key(|one: &StoredInterceptor| one.sequence);
        Ok(removed)
    }
}

impl InterceptorStore for SqlStore {
    fn revision(&self) -> BoxFuture<'_, Result<i64, StoreError>> {
        self.revision_now().boxed()
    }

    fn load(&self) -> BoxFuture<'_, Result<StoredInterceptors, StoreError>> {
        self.load_now().boxed()
    }

    fn add(&self, new: NewInterceptor) -> BoxFuture<'_, Result<StoredInterceptor, StoreError>> {
        self.add_now(new).boxed()
    }

    fn remove(
        &self,
        tenant: String,
        ids: Vec<String>,
    ) -> BoxFuture<'_, Result<Vec<StoredInterceptor>, StoreError>> {
        async move { self.remove_now(&tenant, &ids).await }.boxed()
    }
}

fn stored(row: &Row) -> Result<StoredInterceptor, Error> {
    Ok(StoredInterceptor {
        sequence: row.number("sequence")?,
        tenant: row.text("tenant")?,
        id: row.text("id")?,
        creator: row.text("creator")?,
        created: timestamp(row.number("create_time_us")?)?,
        definition: row.text("definition")?,
    })
}
