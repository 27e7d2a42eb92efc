/** A master reads no checkpoint of another one. */
export const VERSION = 1
