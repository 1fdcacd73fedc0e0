-- Those that are archived or not, by status, beside their texts: a search among few of them reads no others. PostgreSQL
-- weighs this index against that of the texts, and may use both.
CREATE INDEX submission_text_by_class ON submission_text (tenant, is_archived, status);
