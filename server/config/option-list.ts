import { OPTIONS as ALL } from './options.ts'
import type { Values } from './config.ts'

/**
 * What a start has to know of the options: the bundle has this as plain data (see build/option-list.ts), as the schema
 * takes as long to load as Node itself.
 * `plain`: what it takes, where that can be told without the schema
 */
export type Option =
  & import('./options.ts').Option
  & { plain?: Plain }
/** a part of JSON Schema */
export type Plain = { type: 'integer' | 'number', minimum: number, maximum: number } | { type: 'string',
  minLength?: number, pattern?: string } | { type: 'boolean' } | { enum: readonly string[] } | {
  const: string | number
} | { anyOf: readonly Plain[] } | { type: 'array', items: Plain }
export const OPTIONS: readonly Option[] = ALL

/** What counts where nothing is set; null: the schema says it. */
export const DEFAULTS: Values | null = null
