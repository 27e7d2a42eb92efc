import { createHmac } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { DeckError } from '../errors.js'
import { originOf, valueOf, withValues } from './config.js'
import { OPTIONS } from './options.js'

/**
 * @typedef {import('./config.js').Config} Config
 * @typedef {ReturnType<typeof createSettings>} Settings
 * @typedef {{ name: string, from: unknown, to: unknown }} Change  null for what is secret
 * @typedef {{ name: string, value: unknown, configured: unknown }} RememberedChange  `configured`: what it has changed
 *
 * One option, as people see it.
 * @typedef {object} Setting
 * @property {string} name  its path in a config file
 * @property {unknown} value  null where nothing is set, or where it is secret
 * @property {'default' | 'operator' | import('./config.js').Origin['source']} source
 * @property {string | null} from  the file, the variable or the flag
 * @property {unknown} default
 * @property {string} description
 * @property {string} expected
 * @property {boolean} isLive
 * @property {boolean} isSecret
 */

/** Where something else than the option can change. @type {Readonly<Record<string, string>>} */
const OTHER_WAYS = Object.freeze({ workers: '; PUT /api/v1/scale changes how many run now' })

/**
 * What a master runs with: its configuration, and what an operator has changed since. Whoever takes something from it
 * that can change reads it when it is needed, or is told.
 * @param {Config} configured @param {{ key: string }} secret  `key`: of the digest of all values, some of which are secret
 */
export function createSettings (configured, { key }) {
  let current = configured

  return {
    get current () { return current },

    /** @returns {Setting[]} */
    list: () => OPTIONS.map(toSetting),

    /** Another one after each change, and the same again where a change was taken back. */
    digest: () => createHmac('sha256', key).update(JSON.stringify(OPTIONS.map((option) => [option.name, valueOf(current, option)]))).digest('base64url'),

    /**
     * What would be after these changes; nothing has happened yet.
     * @param {Record<string, unknown>} wanted  by the name of the option
     * @returns {{ config: Config, changes: Change[] }}
     * @throws {DeckError} unknown-option, not-possible, invalid-config
     */
    plan (wanted) {
      const named = OPTIONS.filter((option) => Object.hasOwn(wanted, option.name))
      for (const { name, isLive } of named) if (!isLive) throw new DeckError('not-possible', `${name} can only be set at a start${OTHER_WAYS[name] ?? ''}`)
      const config = withValues(current, wanted)
      const changed = named.filter((option) => !isSame(option, current, config))
      return { config, changes: changed.map((option) => ({ name: option.name, from: shownValue(option, current), to: shownValue(option, config) })) }
    },

    /** @param {Config} config of a plan */
    adopt (config) { current = config },

    /** @returns {RememberedChange[]} what the next master goes on with */
    memory: () => OPTIONS.filter(isChanged).map((option) => ({ name: option.name, value: valueOf(current, option), configured: valueOf(configured, option) })),

    /**
     * Goes on with the changes of the master before. What has been configured anew since counts more, and what this
     * version does not take is let go.
     * @param {RememberedChange[]} remembered
     */
    restore (remembered) {
      for (const { name, value, configured: before } of remembered) {
        const option = OPTIONS.find((each) => each.name === name)
        if (!option?.isLive || !isDeepStrictEqual(before, valueOf(configured, option))) continue
        try {
          current = withValues(current, { [name]: value })
        } catch (error) {
          if (!(error instanceof DeckError)) throw error
        }
      }
    }
  }

  /** @param {import('./options.js').Option} option @returns {Setting} */
  function toSetting (option) {
    const { name, fallback = null, description, expected, isLive, isSecret } = option
    const origin = isChanged(option) ? { source: /** @type {const} */ ('operator'), from: null } : originOf(configured, name) ?? { source: /** @type {const} */ ('default'), from: null }
    return { name, value: shownValue(option, current), ...origin, default: fallback, description, expected, isLive, isSecret }
  }

  /** @param {import('./options.js').Option} option */
  function isChanged (option) {
    return !isSame(option, configured, current)
  }
}

/** @param {import('./options.js').Option} option @param {Config} one @param {Config} other */
function isSame (option, one, other) {
  return isDeepStrictEqual(valueOf(one, option), valueOf(other, option))
}

/** @param {import('./options.js').Option} option @param {Config} config */
function shownValue (option, config) {
  return option.isSecret ? null : valueOf(config, option) ?? null
}
