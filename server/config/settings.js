import { createHmac } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { DeckError } from '../errors.js'
import { originOf, valueOf, withValues } from './config.js'
import { OPTIONS } from './option-list.js'
import { isUsed } from './runtime-options.js'
import { withoutUrlSecrets } from '../system/without-url-secrets.js'

/**
 * @typedef {import('./config.js').Config} Config
 * @typedef {import('./option-list.js').Option} Option
 * @typedef {ReturnType<typeof createSettings>} Settings
 * @typedef {{ name: string, from: unknown, to: unknown }} Change  null for what is secret
 * @typedef {{ name: string, value: unknown, configured: unknown }} RememberedChange  `configured`: what it has changed
 *
 * An option that was configured anew. What takes effect `now` does so as soon as somebody sets it while the cluster runs, else with the next start.
 * @typedef {Change & Pick<Option, 'takesEffect'>} NewChange
 *
 * An option with its value.
 * @typedef {object} Setting
 * @property {string} name  its path in a config file
 * @property {unknown} value  null where nothing is set, or where it is secret
 * @property {'default' | 'operator' | import('./config.js').Origin['source']} source
 * @property {string | null} from  the file, the variable or the flag
 * @property {{ value: unknown } & import('./config.js').Origin | { value: unknown, source: 'default', from: null } | null} configured  what an operator has changed since the start; null: nothing
 * @property {unknown} default
 * @property {string} description
 * @property {string} expected
 * @property {'ms' | 'bytes' | null} unit
 * @property {Option['takesEffect']} takesEffect
 * @property {boolean} isSecret
 * @property {boolean} isUsed  false: it means nothing for the program that runs
 */

/** The end of the refusal to change an option: another way to the same for now. @type {Readonly<Record<string, string>>} */
const OTHER_WAYS = Object.freeze({ workers: '; PUT /api/v1/scale changes how many run now' })

const UNSET = Object.freeze({ source: /** @type {const} */ ('default'), from: null })
const CHANGED = Object.freeze({ source: /** @type {const} */ ('operator'), from: null })

/**
 * Holds what a master runs with: its configuration, and what an operator has changed since. Readers of a value that can change read it
 * each time, or are told.
 * @param {Config} configured @param {{ key: string }} secret  `key`: of the digest of all values, some of which are secret
 */
export function createSettings (configured, { key }) {
  let current = configured

  return {
    get current () { return current },

    /** @returns {Setting[]} */
    list: () => OPTIONS.map(toSetting),

    /** Differs after each change, and is the same again if a change is undone. */
    digest () {
      const values = OPTIONS.map((option) => [option.name, valueOf(current, option)])
      return createHmac('sha256', key).update(JSON.stringify(values)).digest('base64url')
    },

    /**
     * Checks changes, and applies none.
     * @param {Record<string, unknown>} wanted  by the name of the option
     * @returns {{ config: Config, changes: Change[] }}
     * @throws {DeckError} unknown-option, not-possible, invalid-config
     */
    plan (wanted) {
      const named = OPTIONS.filter((option) => Object.hasOwn(wanted, option.name))
      const fixed = named.find(({ takesEffect }) => takesEffect !== 'now')
      if (fixed) throw new DeckError('not-possible', `${fixed.name} can only be set at a start${OTHER_WAYS[fixed.name] ?? ''}`)
      const config = withValues(current, wanted)
      const changed = named.filter((option) => !isSame(option, current, config))
      return { config, changes: changed.map((option) => ({ name: option.name, from: shownValue(option, current), to: shownValue(option, config) })) }
    },

    /**
     * What has changed in the configuration since it was read.
     * @param {Partial<Config>} next  as it is read now @param {Partial<Config>} deployed  as the last deploy has read it
     * @returns {NewChange[]}
     */
    changesIn (next, deployed) {
      const baseOf = (/** @type {Option} */ { takesEffect }) => takesEffect === 'deploy' ? deployed : configured
      return OPTIONS.filter((option) => !isSame(option, baseOf(option), next)).map((option) => ({
        name: option.name,
        from: shownValue(option, baseOf(option)),
        to: shownValue(option, next),
        takesEffect: option.takesEffect
      }))
    },

    /** @param {Config} config of a plan */
    adopt (config) { current = config },

    /** @returns {RememberedChange[]} the changes, for the next master */
    memory () {
      return OPTIONS.filter(isChanged).map((option) => ({ name: option.name, value: valueOf(current, option), configured: valueOf(configured, option) }))
    },

    /**
     * Applies the changes of the master before, but for options that were configured anew since or that this version refuses.
     * @param {RememberedChange[]} remembered
     */
    restore (remembered) {
      for (const { name, value, configured: before } of remembered) {
        const option = OPTIONS.find((each) => each.name === name)
        if (option?.takesEffect !== 'now' || !isDeepStrictEqual(before, valueOf(configured, option))) continue
        try {
          current = withValues(current, { [name]: value })
        } catch (error) {
          if (!(error instanceof DeckError)) throw error
        }
      }
    }
  }

  /** @param {Option} option @returns {Setting} */
  function toSetting (option) {
    const { name, fallback = null, description, expected, hint, takesEffect, isSecret } = option
    const origin = originOf(configured, name) ?? UNSET
    return {
      name,
      value: shownValue(option, current),
      ...(isChanged(option) ? CHANGED : origin),
      configured: isChanged(option) ? { value: shownValue(option, configured), ...origin } : null,
      default: fallback,
      description,
      expected,
      unit: hint === 'ms' || hint === 'bytes' ? hint : null,
      takesEffect,
      isSecret,
      isUsed: isUsed(current.runtime, name)
    }
  }

  /** @param {Option} option */
  function isChanged (option) {
    return !isSame(option, configured, current)
  }
}

/** @param {Option} option @param {Partial<Config>} one @param {Partial<Config>} other */
function isSame (option, one, other) {
  return isDeepStrictEqual(valueOf(one, option), valueOf(other, option))
}

/** @param {Option} option @param {Partial<Config>} config */
function shownValue (option, config) {
  const value = option.isSecret ? null : valueOf(config, option) ?? null
  return typeof value === 'string' ? withoutUrlSecrets(value) : value
}
