//! Bytes in a folder and in a stand-in for S3, by the same tests.
