/** Of an app. */
export const MAX_WORKERS = 256
