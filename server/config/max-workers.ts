/** No app can have more workers. */
export const MAX_WORKERS = 256
