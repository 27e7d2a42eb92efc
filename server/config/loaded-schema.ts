import type { SCHEMA } from './options.ts'

/** The schema of all options, while something has it. */
export const LOADED: { schema: typeof SCHEMA | null } = { schema: null }
