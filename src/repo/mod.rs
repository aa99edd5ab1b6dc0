//! A git repository as the source of bases and the sink of commits; knows git2.
//!
//! Hides object storage: packs, alternates, partial clones, and whether what is written is kept.

mod commit;
mod published;
mod refs;
mod store;
mod tree;

pub use commit::{Base, Commit, IMPORT_TRAILER, Signature};
pub use refs::is_ref_name;
pub use store::{ObjectId, Repo, blob_id};
pub use tree::{Entry, File, MODE_FILE, MODE_NONE};
