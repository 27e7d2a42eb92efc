import { OPTIONS as ALL } from './options.js'

/**
 * What a start has to know of the options: the bundle has this as plain data (see build/option-list.js), as the schema takes as long to
 * load as Node itself.
 * @type {readonly Option[]}
 *
 * @typedef {import('./options.js').Option & { plain?: Plain }} Option  `plain`: what it takes, where that can be told without the schema
 *
 * @typedef {{ type: 'integer' | 'number', minimum: number, maximum: number } | { type: 'string', minLength?: number, pattern?: string } | { type: 'boolean' }
 *   | { enum: readonly string[] } | { const: string | number } | { anyOf: readonly Plain[] } | { type: 'array', items: Plain }} Plain  a part of JSON Schema
 */
export const OPTIONS = ALL

/** What counts where nothing is set; null: the schema says it. @type {import('./config.js').Values | null} */
export const DEFAULTS = null
