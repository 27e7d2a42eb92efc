import type { SCHEMA } from './options.ts'

/** The schema of all options, once something has loaded it. */
export const LOADED: { schema: typeof SCHEMA | null } = { schema: null }
