//! The body of a request, read before anything is done with it: only then is it known that work can begin.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::HeaderMap;
use http_body::{Body as _, Frame};
use prost::bytes::Bytes;
use tonic::Status;
use tonic::body::Body;

/// What was read, and what comes after it.
struct Gathered {
    data: VecDeque<Bytes>,
    trailers: Option<HeaderMap>,
    /// Why it could not be read to its end.
    broken: Option<Status>,
    /// What was not read because there is too much.
    rest: Option<Body>,
}

/// What is known of a body that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reading {
    /// How much was read, in bytes.
    pub(super) bytes: usize,
    /// Whether it had to be waited for.
    pub(super) has_waited: bool,
}

/// Reads a body to its end, or until it has more than `bytes_max`; whoever reads it again finds all of it.
pub(super) async fn gather(mut body: Body, bytes_max: usize) -> (Body, Reading) {
    let mut gathered = Gathered { data: VecDeque::new(), trailers: None, broken: None, rest: None };
    let (mut bytes, mut has_waited) = (0, false);
    while !body.is_end_stream() {
        if bytes > bytes_max {
            gathered.rest = Some(body);
            break;
        }
        let frame = poll_fn(|context| {
            let frame = Pin::new(&mut body).poll_frame(context);
            has_waited |= frame.is_pending();
            frame
        });
        match frame.await {
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) => {
                    bytes += data.len();
                    gathered.data.push_back(data);
                }
                Err(frame) => gathered.trailers = frame.into_trailers().ok(),
            },
            Some(Err(status)) => {
                gathered.broken = Some(status);
                break;
            }
            None => break,
        }
    }
    (Body::new(gathered), Reading { bytes, has_waited })
}

impl http_body::Body for Gathered {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if let Some(data) = self.data.pop_front() {
            return Poll::Ready(Some(Ok(Frame::data(data))));
        }
        if let Some(trailers) = self.trailers.take() {
            return Poll::Ready(Some(Ok(Frame::trailers(trailers))));
        }
        if let Some(status) = self.broken.take() {
            return Poll::Ready(Some(Err(status)));
        }
        match &mut self.rest {
            Some(rest) => Pin::new(rest).poll_frame(context),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.data.is_empty()
            && self.trailers.is_none()
            && self.broken.is_none()
            && self.rest.as_ref().is_none_or(http_body::Body::is_end_stream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends these frames, each after a moment.
    struct Slow(VecDeque<Result<Frame<Bytes>, Status>>, bool);

    impl http_body::Body for Slow {
        type Data = Bytes;
        type Error = Status;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
            self.1 = !self.1;
            if self.1 {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            Poll::Ready(self.0.pop_front())
        }
    }

    async fn read(mut body: Body) -> (Vec<u8>, Option<HeaderMap>, Option<Status>) {
        let (mut data, mut trailers, mut broken) = (Vec::new(), None, None);
        while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
            match frame.map(Frame::into_data) {
                Ok(Ok(bytes)) => data.extend_from_slice(&bytes),
                Ok(Err(frame)) => trailers = frame.into_trailers().ok(),
                Err(status) => broken = Some(status),
            }
        }
        (data, trailers, broken)
    }

    fn slow(frames: impl IntoIterator<Item = Result<Frame<Bytes>, Status>>) -> Body {
        Body::new(Slow(frames.into_iter().collect(), false))
    }

    #[tokio::test]
    async fn all_of_a_body_is_found_again() {
        let data = |text: &'static str| Ok(Frame::data(Bytes::from_static(text.as_bytes())));
        let trailers = HeaderMap::from_iter([(http::header::TE, http::HeaderValue::from_static("x"))]);
        let frames = || [data("one "), data("two "), data("three"), Ok(Frame::trailers(trailers.clone()))];
        // As much is read as is needed to see that it is more than may be.
        for (bytes_max, bytes) in [(0, 4), (4, 8), (100, 13)] {
            let (body, reading) = gather(slow(frames()), bytes_max).await;
            assert_eq!(reading, Reading { bytes, has_waited: true });
            let (text, found, broken) = read(body).await;
            assert_eq!(
                (text.as_slice(), found),
                (&b"one two three"[..], Some(trailers.clone())),
                "{bytes_max}"
            );
            assert!(broken.is_none());
        }
        let (body, reading) = gather(Body::empty(), 1).await;
        assert_eq!(reading, Reading { bytes: 0, has_waited: false });
        assert!(body.is_end_stream());
        let (body, _) = gather(slow([data("one "), Err(Status::cancelled("gone"))]), 100).await;
        let (text, _, broken) = read(body).await;
        assert_eq!((text.as_slice(), broken.expect("told").message()), (&b"one "[..], "gone"));
    }
}
