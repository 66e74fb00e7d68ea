//! Images for models: small enough to look at, or left out with a reason, and never cut.

mod scaling;

use std::{borrow::Cow, io::Cursor, panic::catch_unwind};

use base64::{Engine, prelude::BASE64_STANDARD};
use image::{
    DynamicImage, ImageFormat, ImageReader, ImageResult, Limits,
    codecs::{
        jpeg::JpegEncoder,
        png::{CompressionType, FilterType as RowFilter, PngEncoder},
    },
    imageops::FilterType,
};

pub use scaling::Scaling;

pub(super) use scaling::Illustrator;

/// Media types that may be shown to a model as an image. SVG is text to it.
const TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
/// No plot has more; a picture of a few bytes may claim to, and would take all memory to decode.
const MAX_PIXELS: u64 = 64_000_000;
const MAX_DECODED_BYTES: u64 = 256 * 1024 * 1024;
/// Bytes within which an image says how large it is; in photographs a preview may come before.
const HEADER_BYTES: usize = 192 * 1024;
const JPEG_QUALITY: u8 = 85;
/// Scaling down further than this would show nothing.
const MIN_SIDE: u32 = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageLimits {
    pub enabled: bool,
    pub max_width: u32,
    pub max_height: u32,
    /// Bytes of the image itself, before it is written as base64.
    pub max_bytes: usize,
}

/// An image as base64, whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fitted {
    pub(super) data: String,
    pub(super) mime: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum LeftOut {
    #[error("images are switched off")]
    SwitchedOff,
    #[error("images=true shows it")]
    Unwanted,
    #[error("the answer has {0} already; read fewer cells")]
    TooMany(usize),
    #[error("{0}")]
    Limited(String),
    #[error("it is not a readable image")]
    Unreadable,
    #[error("it is too large")]
    TooLarge,
    #[error("it has {width} x {height} pixels, more than can be scaled")]
    TooManyPixels { width: u32, height: u32 },
}

/// Knowledge of an image without decoding it.
pub(super) enum Shortcut {
    /// Image that is small enough as it is, or left out.
    Settled(Result<Fitted, LeftOut>),
    /// Its base64.
    MustScale(String),
}

pub(super) fn is_image(mime: &str) -> bool {
    TYPES.contains(&mime)
}

/// Width and height of an image in base64, from its header.
pub(super) fn size_in_pixels(base64: &str) -> Option<(u32, u32)> {
    let bytes = decoded(&header(base64)).ok()?;
    let (_, width, height) = dimensions(&bytes).ok()?;
    Some((width, height))
}

/// Looks at an image in base64 as far as its header, so that only what must be scaled waits for it.
pub(super) fn shortcut(base64: String, limits: &ImageLimits) -> Shortcut {
    if !limits.enabled {
        return Shortcut::Settled(Err(LeftOut::SwitchedOff));
    }
    // What is written in lines is a little longer.
    let may_fit = base64.len() / 3 <= limits.max_bytes / 2;
    if may_fit {
        return match as_it_is(&base64, limits) {
            Ok(Some(fitted)) => Shortcut::Settled(Ok(fitted)),
            Ok(None) => Shortcut::MustScale(base64),
            Err(left_out) => Shortcut::Settled(Err(left_out)),
        };
    }
    match decoded(&header(&base64)).and_then(|bytes| dimensions(&bytes)) {
        Ok((_, width, height)) => match check_pixels(width, height) {
            Ok(()) => Shortcut::MustScale(base64),
            Err(left_out) => Shortcut::Settled(Err(left_out)),
        },
        // It may say it later.
        Err(_) => Shortcut::MustScale(base64),
    }
}

/// The beginning of an image in base64, which says how large it is.
fn header(base64: &str) -> String {
    let digits = base64.chars().filter(|character| !character.is_ascii_whitespace());
    digits.take(HEADER_BYTES / 3 * 4).collect()
}

/// An image that needs no scaling; none for one that does.
fn as_it_is(base64: &str, limits: &ImageLimits) -> Result<Option<Fitted>, LeftOut> {
    let data: String = base64.split_ascii_whitespace().collect();
    let bytes = decoded(&data)?;
    let (format, width, height) = dimensions(&bytes)?;
    if width <= limits.max_width && height <= limits.max_height && bytes.len() <= limits.max_bytes {
        // The image itself says what it is; what it was called may be wrong.
        let mime = format.to_mime_type();
        let fitted = is_image(mime).then_some(Fitted { data, mime });
        return fitted.map(Some).ok_or(LeftOut::Unreadable);
    }
    check_pixels(width, height).map(|()| None)
}

/// An image in base64, scaled down if it is larger than allowed. Takes a while if it has to be.
fn fit(base64: &str, limits: &ImageLimits) -> Result<Fitted, LeftOut> {
    if let Some(fitted) = as_it_is(base64, limits)? {
        return Ok(fitted);
    }
    let bytes = decoded(&base64.split_ascii_whitespace().collect::<String>())?;
    let (format, ..) = dimensions(&bytes)?;
    // A defect in decoding what somebody put into a notebook must cost one image, not the call.
    let scaled = catch_unwind(|| {
        let image = reader(&bytes, format).decode().map_err(|_| LeftOut::Unreadable)?;
        scale(&image, format, limits)
    });
    scaled.unwrap_or(Err(LeftOut::Unreadable))
}

fn decoded(base64: &str) -> Result<Vec<u8>, LeftOut> {
    BASE64_STANDARD.decode(base64).map_err(|_| LeftOut::Unreadable)
}

/// The format, width and height that an image's header tells.
fn dimensions(bytes: &[u8]) -> Result<(ImageFormat, u32, u32), LeftOut> {
    let format = image::guess_format(bytes).map_err(|_| LeftOut::Unreadable)?;
    let size = reader(bytes, format).into_dimensions();
    let (width, height) = size.map_err(|_| LeftOut::Unreadable)?;
    Ok((format, width, height))
}

fn check_pixels(width: u32, height: u32) -> Result<(), LeftOut> {
    match u64::from(width) * u64::from(height) > MAX_PIXELS {
        true => Err(LeftOut::TooManyPixels { width, height }),
        false => Ok(()),
    }
}

fn reader(bytes: &[u8], format: ImageFormat) -> ImageReader<Cursor<&[u8]>> {
    let mut limits = Limits::default();
    limits.max_alloc = Some(MAX_DECODED_BYTES);
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    reader.limits(limits);
    reader
}

/// Makes an image as large as its pixels may be, and then smaller until its bytes are few enough too.
fn scale(image: &DynamicImage, format: ImageFormat, limits: &ImageLimits) -> Result<Fitted, LeftOut> {
    let (mut width, mut height) = (limits.max_width, limits.max_height);
    loop {
        let fits = image.width() <= width && image.height() <= height;
        let smaller = (!fits).then(|| image.resize(width, height, FilterType::Triangle));
        let shown = smaller.as_ref().unwrap_or(image);
        let (bytes, mime) = encode(shown, format).map_err(|_| LeftOut::Unreadable)?;
        if bytes.len() <= limits.max_bytes {
            let data = BASE64_STANDARD.encode(&bytes);
            return Ok(Fitted { data, mime });
        }
        (width, height) = (shown.width() * 2 / 3, shown.height() * 2 / 3);
        if width.max(height) < MIN_SIDE {
            return Err(LeftOut::TooLarge);
        }
        (width, height) = (width.max(1), height.max(1));
    }
}

/// Encodes photographs as photographs and everything else as PNG, which keeps lines and letters sharp.
fn encode(image: &DynamicImage, format: ImageFormat) -> ImageResult<(Vec<u8>, &'static str)> {
    let mut bytes = Vec::new();
    if format == ImageFormat::Jpeg {
        let encoder = JpegEncoder::new_with_quality(&mut bytes, JPEG_QUALITY);
        image.to_rgb8().write_with_encoder(encoder)?;
        return Ok((bytes, "image/jpeg"));
    }
    // Smoothing while scaling makes a PNG harder to compress, and every byte is sent to a model.
    let encoder = PngEncoder::new_with_quality(&mut bytes, CompressionType::Best, RowFilter::Adaptive);
    lean(image).write_with_encoder(encoder)?;
    Ok((bytes, "image/png"))
}

/// An image without the channels that say nothing: most plots have an alpha channel and nothing to see through.
fn lean(image: &DynamicImage) -> Cow<'_, DynamicImage> {
    let is_opaque = |image: &DynamicImage| image.to_rgba8().pixels().all(|pixel| pixel[3] == u8::MAX);
    match image.color().has_alpha() && is_opaque(image) {
        true => Cow::Owned(DynamicImage::ImageRgb8(image.to_rgb8())),
        false => Cow::Borrowed(image),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: ImageLimits = ImageLimits {
        enabled: true,
        max_width: 100,
        max_height: 50,
        max_bytes: 1 << 20,
    };

    fn drawn(width: u32, height: u32, format: ImageFormat) -> String {
        // Noise, so that it does not compress.
        let pixel = |x: u32, y: u32| {
            let noise = x.wrapping_mul(2_654_435_761) ^ y.wrapping_mul(40_503_001).rotate_left(x % 31);
            let [red, green, blue, _] = noise.to_le_bytes();
            image::Rgb([red, green, blue])
        };
        let image = DynamicImage::ImageRgb8(image::RgbImage::from_fn(width, height, pixel));
        let mut bytes = Cursor::new(Vec::new());
        image.write_to(&mut bytes, format).expect("an image");
        BASE64_STANDARD.encode(bytes.into_inner())
    }

    fn size_of(fitted: &Fitted) -> (u32, u32) {
        let bytes = BASE64_STANDARD.decode(&fitted.data).expect("base64");
        let format = image::guess_format(&bytes).expect("a format");
        assert_eq!(format.to_mime_type(), fitted.mime);
        reader(&bytes, format).into_dimensions().expect("a size")
    }

    #[test]
    fn a_small_image_is_left_as_it_is() {
        for format in [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::Gif, ImageFormat::WebP] {
            let data = drawn(100, 50, format);
            let lines = format!("{}\n{}\n", &data[..20], &data[20..]);
            let mime = format.to_mime_type();
            assert_eq!(fit(&lines, &LIMITS), Ok(Fitted { data, mime }));
        }
    }

    #[test]
    fn a_large_image_is_scaled_and_keeps_its_shape() {
        let wide = fit(&drawn(400, 100, ImageFormat::Png), &LIMITS).expect("scaled");
        assert_eq!((size_of(&wide), wide.mime), ((100, 25), "image/png"));
        let high = fit(&drawn(100, 200, ImageFormat::Jpeg), &LIMITS).expect("scaled");
        assert_eq!((size_of(&high), high.mime), ((25, 50), "image/jpeg"));
    }

    #[test]
    fn a_scaled_plot_is_compressed_well() {
        // A line on white with an alpha channel, as plots are.
        let pixel = |x: u32, y: u32| {
            let line = 200.0 + 120.0 * (f64::from(x) / 60.0).sin();
            if (f64::from(y) - line).abs() < 2.0 {
                image::Rgba([31, 119, 180, 255])
            } else {
                image::Rgba([255; 4])
            }
        };
        let image = DynamicImage::ImageRgba8(image::RgbaImage::from_fn(800, 400, pixel));
        let (whole, _) = encode(&image, ImageFormat::Png).expect("an image");
        let limits = ImageLimits {
            max_width: 700,
            max_height: 700,
            ..LIMITS
        };
        let fitted = fit(&BASE64_STANDARD.encode(&whole), &limits).expect("scaled");
        let scaled = BASE64_STANDARD.decode(&fitted.data).expect("base64");
        let mut fast = Cursor::new(Vec::new());
        let smaller = image.resize(700, 700, FilterType::Triangle);
        smaller.write_to(&mut fast, ImageFormat::Png).expect("an image");
        let fast = fast.into_inner().len();
        assert!(scaled.len() * 4 < fast * 3, "{} of {fast} bytes", scaled.len());
    }

    #[test]
    fn an_image_of_too_many_bytes_is_scaled_until_they_are_few_enough() {
        let limits = ImageLimits {
            max_bytes: 3000,
            ..LIMITS
        };
        let fitted = fit(&drawn(100, 50, ImageFormat::Png), &limits).expect("scaled");
        let (width, height) = size_of(&fitted);
        assert!(fitted.data.len() <= 4000 && width < 100 && width == 2 * height);
        let impossible = ImageLimits {
            max_bytes: 60,
            ..LIMITS
        };
        let refused = fit(&drawn(100, 50, ImageFormat::Png), &impossible);
        assert_eq!(refused, Err(LeftOut::TooLarge));
    }

    #[test]
    fn what_is_no_image_is_left_out() {
        let cut = &drawn(400, 100, ImageFormat::Png)[..400];
        for data in ["not base64", "aGVsbG8=", cut] {
            assert_eq!(fit(data, &LIMITS), Err(LeftOut::Unreadable), "{data}");
        }
    }

    #[test]
    fn an_image_that_claims_to_be_huge_is_not_decoded() {
        let mut bytes = BASE64_STANDARD.decode(drawn(10, 10, ImageFormat::Gif)).expect("base64");
        // The size of the screen, then that of its only picture.
        bytes[6..10].copy_from_slice(&[0xff; 4]);
        let claimed = BASE64_STANDARD.encode(bytes);
        let left_out = LeftOut::TooManyPixels {
            width: 65_535,
            height: 65_535,
        };
        assert_eq!(fit(&claimed, &LIMITS), Err(left_out.clone()));
        assert!(matches!(shortcut(claimed, &LIMITS), Shortcut::Settled(Err(why)) if why == left_out));
    }

    #[test]
    fn only_what_must_be_scaled_waits_for_it() {
        let small = shortcut(drawn(100, 50, ImageFormat::Png), &LIMITS);
        assert!(matches!(small, Shortcut::Settled(Ok(_))));
        let broken = shortcut("not base64".to_owned(), &LIMITS);
        assert!(matches!(broken, Shortcut::Settled(Err(LeftOut::Unreadable))));
        let few_bytes = ImageLimits {
            max_bytes: 3000,
            ..LIMITS
        };
        for (width, limits) in [(101, &LIMITS), (100, &few_bytes)] {
            let large = shortcut(drawn(width, 50, ImageFormat::Png), limits);
            assert!(matches!(large, Shortcut::MustScale(_)), "{width}");
        }
    }

    #[test]
    fn images_can_be_switched_off() {
        let limits = ImageLimits {
            enabled: false,
            ..LIMITS
        };
        let refused = shortcut(drawn(10, 10, ImageFormat::Png), &limits);
        assert!(matches!(refused, Shortcut::Settled(Err(LeftOut::SwitchedOff))));
    }
}
