// What both readers of a zip, on the command line and in the page, hold it against. Asks Node for nothing.

export const LOCAL = 0x04034b50;
export const CENTRAL = 0x02014b50;
export const END = 0x06054b50;
export const LOCAL_BYTES = 30;
export const CENTRAL_BYTES = 46;
export const END_BYTES = 22;
export const DEFLATE = 8;
/** Audit rows shrink about tenfold; Deflate itself cannot do more than 1,032. */
export const RATIO_MAX = 200;
export const RATIO_FREE_BYTES = 1_048_576;

/** The name of a file inside a bundle: plain, at most one folder deep, and never a way out of it. */
export function isEntryName(name: string): boolean {
  return /^(?:[\w-][\w.-]{0,99}\/)?[\w-][\w.-]{0,99}$/.test(name);
}
