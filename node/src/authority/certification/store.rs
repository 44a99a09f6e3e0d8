//! The store of an archive: a prefix of an S3-compatible bucket, or a folder elsewhere, which keeps every certified number
//! for ever. The archive's own folder then keeps only the newest ones.
//!
//! ```text
//!  folder: 0000000007.*, 0000000008.*  ──► uploads (`uploads`) ──► store: 0000000001.* to 0000000008.*
//!  a number that the folder lacks      ◄── fetched, verified as any other, removed again (`fetched`) ◄──┘
//! ```
//! The objects of a number have the names of its files, and the certificate comes last there, too: without it, a number
//! is not in the store. The store is trusted with nothing: what it returns is verified as a peer's files are, and a file
//! is removed from the folder only after its object was read back and is the same.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fastpay_rpc::{ARCHIVE_PART_BYTES, ArchiveFile, ArchivePart};
use object_store::aws::AmazonS3Builder;
use object_store::local::LocalFileSystem;
use object_store::path::Path as Key;
use object_store::{Error as ObjectError, GetOptions, GetRange, ObjectStore, ObjectStoreExt, RetryConfig};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use url::Url;

use super::archive::{CERTIFICATE, file_name, kind_of, number_of};

/// The bytes of one request. S3 takes parts of 5 MiB and more, and at most 10,000 of them: a file may have 78 GiB.
const PART_BYTES: usize = 8 << 20;
/// The longest certificate: at most 255 votes of about 230 bytes, and the checkpoint.
const CERTIFICATE_BYTES_MAX: usize = 1 << 18;
/// Peers' reads of the store at once: each costs the operator a request, and its bytes.
const PEER_READS_MAX: usize = 2;
/// Clients' reads of the store at once, fewer than all their reads (`archived`): an outage leaves some to the folder.
const CLIENT_READS_MAX: usize = 2;
/// Whoever waits for the store tries again by itself, so a request fails soon.
const TRIES_MAX: usize = 2;
const TRIES_TIMEOUT: Duration = Duration::from_secs(60);

/// Why the store of an archive cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The URL names no store.
    #[error("{0} is no place for an archive; give s3://BUCKET/PREFIX or file:///FOLDER")]
    Url(String),
    /// The settings are not sufficient.
    #[error(
        "the archive's store {store} cannot be used: {error}. For S3 set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, \
         AWS_REGION and, if it is not Amazon's, AWS_ENDPOINT_URL; a folder must exist"
    )]
    Settings {
        /// The store's URL.
        store: String,
        /// What is wrong.
        error: Box<ObjectError>,
    },
    /// The store does not do what it is asked.
    #[error(
        "the archive's store did not serve {object}: {error}. Check that it can be reached and that the AWS_… \
         credentials may list, read, write and delete there"
    )]
    Access {
        /// The object's URL.
        object: String,
        /// Why not.
        error: Box<ObjectError>,
    },
    /// An object is missing.
    #[error(
        "{0} is missing from the archive's store; restore it from the bucket's earlier versions, or copy it from \
         another authority's archive"
    )]
    Missing(String),
    /// Another checkpoint of the number has a successor.
    #[error(
        "{0} is of another checkpoint than this archive's, and the store has a successor of it; nothing was replaced. \
         Another authority, or another deployment, uploads to this place: give each authority its own prefix"
    )]
    OtherArchive(String),
    /// An object is not what was uploaded, and the folder has no certificate any more to upload all again.
    #[error(
        "{0} is not what this authority uploaded; nothing was removed from the folder. Restore it from the bucket's \
         earlier versions, or copy it from another authority's archive"
    )]
    Altered(String),
}

/// Where an archive keeps what its folder does not.
#[derive(Clone, Debug)]
pub struct Store {
    objects: Arc<dyn ObjectStore>,
    prefix: Key,
    /// Without a slash at its end.
    url: String,
    peer_reads: Arc<Semaphore>,
    client_reads: Arc<Semaphore>,
}

/// One of few clients' reads at a time.
#[derive(Debug)]
pub(super) struct ClientRead(#[expect(dead_code, reason = "held until it is dropped")] OwnedSemaphorePermit);

impl fmt::Display for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.url)
    }
}

impl Store {
    /// Whether a place is the URL of a store rather than a folder.
    #[must_use]
    pub fn url_of(place: &Path) -> Option<Url> {
        let url: Url = place.to_str()?.parse().ok()?;
        matches!(url.scheme(), "s3" | "file").then_some(url)
    }

    /// The store at `s3://BUCKET/PREFIX`, with the settings in the environment variables `AWS_…`; or at
    /// `file:///FOLDER`, which exists. It is not asked for anything.
    ///
    /// # Errors
    /// [`StoreError::Url`] or [`StoreError::Settings`].
    pub fn open(url: &Url) -> Result<Self, StoreError> {
        let text = url.as_str().trim_end_matches('/').to_owned();
        let failed = |error| StoreError::Settings { store: text.clone(), error: Box::new(error) };
        match (url.scheme(), url.host_str()) {
            ("s3", Some(bucket)) => {
                let retry = RetryConfig { max_retries: TRIES_MAX, retry_timeout: TRIES_TIMEOUT, ..Default::default() };
                let s3 = AmazonS3Builder::from_env().with_bucket_name(bucket).with_retry(retry).build();
                let prefix = Key::from_url_path(url.path()).map_err(|error| failed(error.into()))?;
                Ok(Self::over(Arc::new(s3.map_err(failed)?), prefix, text.clone()))
            }
            ("file", None) => {
                let folder = url.to_file_path().map_err(|()| StoreError::Url(text.clone()))?;
                let local = LocalFileSystem::new_with_prefix(folder).map_err(failed)?.with_fsync(true);
                Ok(Self::over(Arc::new(local), Key::default(), text.clone()))
            }
            _ => Err(StoreError::Url(text)),
        }
    }

    /// The store under a prefix of these objects, which messages call `url`.
    #[must_use]
    pub fn over(objects: Arc<dyn ObjectStore>, prefix: Key, url: String) -> Self {
        let [peer_reads, client_reads] = [PEER_READS_MAX, CLIENT_READS_MAX].map(|max| Arc::new(Semaphore::new(max)));
        Self { objects, prefix, url, peer_reads, client_reads }
    }

    fn key(&self, number: u64, kind: &str) -> Key {
        self.prefix.clone().join(file_name(number, kind))
    }

    /// The URL of an object, for messages.
    pub(super) fn object(&self, number: u64, kind: &str) -> String {
        format!("{}/{}", self.url, file_name(number, kind))
    }

    fn failed(&self, number: u64, kind: &str) -> impl Fn(ObjectError) -> StoreError {
        let object = self.object(number, kind);
        move |error| match error {
            ObjectError::NotFound { .. } => StoreError::Missing(object.clone()),
            error => StoreError::Access { object: object.clone(), error: Box::new(error) },
        }
    }

    /// The numbers whose certificate is in the store.
    pub(super) async fn numbers(&self) -> Result<BTreeSet<u64>, StoreError> {
        let listed = self.objects.list_with_delimiter(Some(&self.prefix)).await;
        let listed = listed.map_err(|error| StoreError::Access { object: self.url.clone(), error: Box::new(error) })?;
        let names = listed.objects.iter().filter_map(|object| object.location.filename());
        Ok(names.filter_map(|name| number_of(name, CERTIFICATE)).collect())
    }

    /// The part of a file at an offset, at most `bytes_max` long.
    async fn part(&self, number: u64, kind: &str, offset: u64, bytes_max: usize) -> Result<ArchivePart, StoreError> {
        let (key, failed) = (self.key(number, kind), self.failed(number, kind));
        let end = offset.saturating_add(bytes_max as u64);
        let options = GetOptions { range: Some(GetRange::Bounded(offset..end)), ..Default::default() };
        let read = match self.objects.get_opts(&key, options).await {
            Ok(read) => read,
            // Stores refuse to read beyond the end, each in its way.
            Err(error) if offset > 0 && !matches!(error, ObjectError::NotFound { .. }) => {
                let length = self.objects.head(&key).await.map_err(&failed)?.size;
                if offset < length {
                    return Err(failed(error));
                }
                return Ok(ArchivePart { bytes: Bytes::new(), length });
            }
            Err(error) => return Err(failed(error)),
        };
        let length = read.meta.size;
        Ok(ArchivePart { bytes: read.bytes().await.map_err(failed)?, length })
    }

    /// A part of a file for a peer, as [`super::Archive::read_part`] reads it from the folder.
    ///
    /// # Errors
    /// If the store does not serve it.
    pub(crate) async fn part_for_peer(
        &self,
        number: u64,
        file: ArchiveFile,
        offset: u64,
    ) -> Result<Option<ArchivePart>, StoreError> {
        // It is never closed.
        let _permit = self.peer_reads.acquire().await;
        match self.part(number, kind_of(file), offset, ARCHIVE_PART_BYTES).await {
            Err(StoreError::Missing(_)) => Ok(None),
            part => part.map(Some),
        }
    }

    /// A turn to read for a client; `None` if too many do.
    pub(super) fn client_read(&self) -> Option<ClientRead> {
        self.client_reads.clone().try_acquire_owned().ok().map(ClientRead)
    }

    /// How long a file is.
    pub(super) async fn length(&self, _: &ClientRead, number: u64, kind: &str) -> Result<u64, StoreError> {
        let head = self.objects.head(&self.key(number, kind)).await;
        Ok(head.map_err(self.failed(number, kind))?.size)
    }

    /// A range of a file's bytes, shorter if the file ends.
    pub(super) async fn range(
        &self,
        _: &ClientRead,
        number: u64,
        kind: &str,
        range: Range<u64>,
    ) -> Result<Bytes, StoreError> {
        let bytes_max = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX);
        Ok(self.part(number, kind, range.start, bytes_max).await?.bytes)
    }

    /// Hands all bytes of a file to `take`, in their order, until it says that it has enough.
    async fn read(
        &self,
        number: u64,
        kind: &str,
        mut take: impl FnMut(&[u8]) -> io::Result<bool>,
    ) -> Result<io::Result<()>, StoreError> {
        let mut offset = 0_u64;
        loop {
            let part = self.part(number, kind, offset, PART_BYTES).await?;
            match take(&part.bytes) {
                Ok(true) => {}
                ended => return Ok(ended.map(drop)),
            }
            offset = offset.saturating_add(part.bytes.len() as u64);
            if part.bytes.is_empty() || offset >= part.length {
                return Ok(Ok(()));
            }
        }
    }

    /// A number's certificate. Whoever can write to the store does not fill the memory with one that is too long.
    pub(super) async fn certificate(&self, number: u64) -> Result<Bytes, StoreError> {
        let part = self.part(number, CERTIFICATE, 0, CERTIFICATE_BYTES_MAX).await?;
        match part.length > CERTIFICATE_BYTES_MAX as u64 {
            true => Err(StoreError::Altered(self.object(number, CERTIFICATE))),
            false => Ok(part.bytes),
        }
    }

    /// Reads a whole file. The inner error is of the writer.
    pub(super) async fn download(
        &self,
        number: u64,
        kind: &str,
        into: &mut impl Write,
    ) -> Result<io::Result<()>, StoreError> {
        self.read(number, kind, |bytes| into.write_all(bytes).map(|()| true)).await
    }

    /// Reads a file back. Returns whether it is the same as `file`; the inner error is of that.
    pub(super) async fn is_same(
        &self,
        number: u64,
        kind: &str,
        mut file: File,
    ) -> Result<io::Result<bool>, StoreError> {
        let mut is_same = true;
        let compare = |bytes: &[u8]| {
            let own = read_up_to(&mut file, bytes.len())?;
            is_same = own == bytes;
            Ok(is_same)
        };
        match self.read(number, kind, compare).await {
            Err(StoreError::Missing(_)) => Ok(Ok(false)),
            Err(error) => Err(error),
            Ok(Err(error)) => Ok(Err(error)),
            Ok(Ok(())) => Ok(read_up_to(&mut file, 1).map(|rest| is_same && rest.is_empty())),
        }
    }

    /// Writes a file, and replaces one that is there. The object is whole or not there. The inner error is of `file`.
    pub(super) async fn upload(
        &self,
        number: u64,
        kind: &str,
        file: &mut impl Read,
    ) -> Result<io::Result<()>, StoreError> {
        let (key, failed) = (self.key(number, kind), self.failed(number, kind));
        let mut part = match read_up_to(file, PART_BYTES) {
            Ok(part) => part,
            Err(error) => return Ok(Err(error)),
        };
        if part.len() < PART_BYTES {
            return self.objects.put(&key, part.into()).await.map(|_| Ok(())).map_err(failed);
        }
        let mut upload = self.objects.put_multipart(&key).await.map_err(&failed)?;
        let sent = async {
            while !part.is_empty() {
                upload.put_part(std::mem::take(&mut part).into()).await?;
                match read_up_to(file, PART_BYTES) {
                    Ok(next) => part = next,
                    Err(error) => return Ok(Err(error)),
                }
            }
            upload.complete().await.map(|_| Ok(()))
        };
        let sent = sent.await;
        if !matches!(sent, Ok(Ok(())))
            && let Err(error) = upload.abort().await
        {
            tracing::debug!(%error, %key, "the parts of an interrupted upload stay in the store");
        }
        sent.map_err(failed)
    }

    /// Takes a number's certificate away, so that its other files may be replaced.
    pub(super) async fn withdraw(&self, number: u64) -> Result<(), StoreError> {
        match self.objects.delete(&self.key(number, CERTIFICATE)).await {
            Ok(()) | Err(ObjectError::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.failed(number, CERTIFICATE)(error)),
        }
    }
}

/// As many bytes, or fewer if the file ends.
fn read_up_to(file: &mut impl Read, bytes_max: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(bytes_max as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}
