//! confusables
