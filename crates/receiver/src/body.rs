//! Bodies: reading one whole within a bound, and the type of the answers.
//!
//! Never: more than the bound in memory, whatever the length header says.

use std::error::Error;

use bytes::Bytes;
use http_body::Body;
use http_body_util::{BodyExt as _, Either, Full, LengthLimitError, Limited};

/// Any error that a body or a store reports.
pub(crate) type BoxError = Box<dyn Error + Send + Sync>;

/// The body of an answer: the layer's own, or the handler's.
pub type ResponseBody<B> = Either<Full<Bytes>, B>;

/// Why a body was not read.
#[derive(Debug)]
pub(crate) enum ReadError {
    TooLarge,
    Broken(BoxError),
}

/// Reads `body` to its end, unless it has more than `bytes_max` bytes.
pub(crate) async fn read<B>(body: B, bytes_max: usize) -> Result<Bytes, ReadError>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    match Limited::new(body, bytes_max).collect().await {
        Ok(read) => Ok(read.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(ReadError::TooLarge),
        Err(error) => Err(ReadError::Broken(error)),
    }
}
