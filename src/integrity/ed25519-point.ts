/** The prime of the field, and the curve's d as a fraction: d = D_TOP / D_BOTTOM (RFC 8032 5.1). */
export const P = 2n ** 255n - 19n;
const D_TOP = -121_665n;
const D_BOTTOM = 121_666n;

/** The order of the group that the base point generates. */
export const L = 2n ** 252n + 27_742_317_777_372_353_535_851_937_790_883_648_493n;

/**
 * Whether 32 bytes are an Ed25519 public key that every verifier judges alike: a y below the prime, of a point
 * on the curve that is not one of the eight of small order, under which made-up signatures pass or fail
 * depending on the version of OpenSSL.
 */
export function isUsablePoint(bytes: Uint8Array): boolean {
  const y = littleEndian(bytes) % 2n ** 255n;
  return y < P && isOnCurve(y) && !isSmallOrder(y);
}

/**
 * Whether 64 bytes are a signature that every verifier judges alike: R is not of small order, and both R and S are
 * spelled in the only way there is. OpenSSL before 3.5 and Go accept an R of small order, OpenSSL 3.5 and libsodium do
 * not. That R is on the curve needs no look: verifying compares it with a point that was computed.
 */
export function isUsableSignature(bytes: Uint8Array): boolean {
  if (bytes.length !== 64) return false;
  const y = littleEndian(bytes.subarray(0, 32)) % 2n ** 255n;
  return y < P && !isSmallOrder(y) && littleEndian(bytes.subarray(32)) < L;
}

// With -x^2 + y^2 = 1 + d x^2 y^2 a point has this y where (y^2 - 1) / (d y^2 + 1) is a square.
function isOnCurve(y: bigint): boolean {
  const yy = y * y;
  const top = (yy - 1n) * D_BOTTOM;
  const bottom = D_TOP * yy + D_BOTTOM;
  // A fraction is a square exactly where the product of its two parts is.
  return isSquare(top * bottom);
}

// Order 1 and 2 have y = 1 and -1, order 4 has y = 0. A point of order 8 doubles to y = 0, which means
// y^2 = -x^2; put into the curve's equation that is d y^4 + 2 y^2 - 1 = 0.
function isSmallOrder(y: bigint): boolean {
  const yy = (y * y) % P;
  if (yy === 0n || yy === 1n) return true;
  return (D_TOP * yy * yy + D_BOTTOM * (2n * yy - 1n)) % P === 0n;
}

function isSquare(value: bigint): boolean {
  const power = modPower(((value % P) + P) % P, (P - 1n) / 2n);
  return power === 0n || power === 1n;
}

/** A power in the field. */
export function modPower(base: bigint, exponent: bigint): bigint {
  let result = 1n;
  let square = base;
  for (let rest = exponent; rest > 0n; rest /= 2n) {
    if (rest % 2n === 1n) result = (result * square) % P;
    square = (square * square) % P;
  }
  return result;
}

/** The number that bytes are, the smallest first. */
export function littleEndian(bytes: Uint8Array): bigint {
  return BigInt(`0x${Buffer.from(bytes).reverse().toString('hex')}`);
}
