//! Tests of the parser.

use super::dump::dump;
use super::parse;
use crate::shell::limits::Limits;

#[test]
fn reads_a_pipeline() {
    let ast = parse("a 'b c' | d && e", &Limits::default());
    assert_eq!(dump(&ast), "(a 'b c') | (d) && (e)");
}
