/** The schema of all options, once something has loaded it. @type {{ schema: typeof import('./options.js').SCHEMA | null }} */
export const LOADED = { schema: null }
