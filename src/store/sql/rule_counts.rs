//! Counts of rules in the database.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::rows::{as_number, count};
use super::{SqlStore, Statement};
use crate::store::{DayCount, RuleCount, RuleCountStore, StoreError};

impl SqlStore {
    async fn add_rule_counts_now(&self, counts: Vec<DayCount>) -> Result<(), StoreError> {
        let mut write = self.database.write().await?;
        for DayCount { tenant, rule_id, day, count } in &counts {
            let insert = Statement::new(
                "INSERT INTO rule_count (tenant, rule_id, day, findings, would_block) VALUES (?, ?, ?, ?, ?) \
                 ON CONFLICT (tenant, rule_id, day) DO UPDATE SET findings = rule_count.findings + excluded.findings, \
                 would_block = rule_count.would_block + excluded.would_block",
            )
            .bind(tenant)
            .bind(rule_id)
            .bind(*day)
            .bind(as_number(count.findings))
            .bind(as_number(count.would_block));
            write.run(insert).await?;
        }
        write.commit().await
    }

    async fn rule_counts_now(
        &self,
        tenant: &str,
        first_day: i64,
    ) -> Result<Vec<(String, RuleCount)>, StoreError> {
        let select = Statement::new(
            "SELECT rule_id, CAST(SUM(findings) AS BIGINT) AS findings, CAST(SUM(would_block) AS BIGINT) AS would_block \
             FROM rule_count WHERE tenant = ? AND day >= ? GROUP BY rule_id",
        );
        let rows = self.database.rows(select.bind(tenant).bind(first_day)).await?;
        self.read_all(&rows, |row| {
            let found = RuleCount {
                findings: count(row.number("findings")?),
                would_block: count(row.number("would_block")?),
            };
            Ok((row.text("rule_id")?, found))
        })
    }

    async fn forget_rule_counts_now(&self, first_day: i64) -> Result<(), StoreError> {
        let delete = Statement::new("DELETE FROM rule_count WHERE day < ?").bind(first_day);
        let mut write = self.database.write().await?;
        write.run(delete).await?;
        write.commit().await
    }
}

impl RuleCountStore for SqlStore {
    fn add_rule_counts(&self, counts: Vec<DayCount>) -> BoxFuture<'_, Result<(), StoreError>> {
        self.add_rule_counts_now(counts).boxed()
    }

    fn rule_counts(
        &self,
        tenant: String,
        first_day: i64,
    ) -> BoxFuture<'_, Result<Vec<(String, RuleCount)>, StoreError>> {
        async move { self.rule_counts_now(&tenant, first_day).await }.boxed()
    }

    fn forget_rule_counts(&self, first_day: i64) -> BoxFuture<'_, Result<(), StoreError>> {
        self.forget_rule_counts_now(first_day).boxed()
    }
}
