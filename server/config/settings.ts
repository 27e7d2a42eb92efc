import { createHmac } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { DeckError } from '../errors.ts'
import { originOf, valueOf, withValues, type Config } from './config.ts'
import { OPTIONS, type Option } from './option-list.ts'
import { isUsed } from './runtime-options.ts'
import { withoutUrlSecrets } from '../system/without-url-secrets.ts'
import type { Setting } from '../api/shapes.ts'

export type Settings = ReturnType<typeof createSettings>
/** null for what is secret */
export type Change = { name: string, from: unknown, to: unknown }
/** `configured`: what it has changed */
export type RememberedChange = { name: string, value: unknown, configured: unknown }
/**
 * An option that was configured anew. What takes effect `now` does so as soon as somebody sets it while the cluster
 * runs, else with the next start.
 */
export type NewChange = Change & Pick<Option, 'takesEffect'>
/** The end of the refusal to change an option: another way to the same for now. */
const OTHER_WAYS: Readonly<Record<string, string>> = Object.freeze({
  workers: '; PUT /api/v1/scale changes how many run now'
})

const UNSET = Object.freeze({ source: 'default' as const, from: null })
const CHANGED = Object.freeze({ source: 'operator' as const, from: null })

/**
 * Holds what a master runs with: its configuration, and what an operator has changed since. Readers of a value that can
 * change read it each time, or are told. `key`: of the digest of all values, some of which are secret.
 */
export function createSettings (configured: Config, { key }: { key: string }) {
  let current = configured

  return {
    get current () {
      return current
    },

    list: (): Setting[] => OPTIONS.map(toSetting),

    /** Differs after each change, and is the same again if a change is undone. */
    digest () {
      const values = OPTIONS.map((option) => [option.name, valueOf(current, option)])
      return createHmac('sha256', key).update(JSON.stringify(values)).digest('base64url')
    },

    /**
     * Checks changes, and applies none. `wanted`: by the name of the option.
     * @throws {DeckError} unknown-option, not-possible, invalid-config
     */
    plan (wanted: Record<string, unknown>): { config: Config, changes: Change[] } {
      const named = OPTIONS.filter((option) => Object.hasOwn(wanted, option.name))
      const fixed = named.find(({ takesEffect }) => takesEffect !== 'now')
      if (fixed)
        throw new DeckError('not-possible', `${fixed.name} can only be set at a start${OTHER_WAYS[fixed.name] ?? ''}`)
      const config = withValues(current, wanted)
      const changed = named.filter((option) => !isSame(option, current, config))
      return { config,
        changes: changed.map((option) => ({ name: option.name, from: shownValue(option, current),
          to: shownValue(option, config) })
        ) }
    },

    /**
     * What has changed in the configuration since it was read. `next`: as it is read now; `deployed`: as the last
     * deploy has read it.
     */
    changesIn (next: Partial<Config>, deployed: Partial<Config>): NewChange[] {
      const baseOf = ({ takesEffect }: Option) => takesEffect === 'deploy' ? deployed : configured
      return OPTIONS.filter((option) => !isSame(option, baseOf(option), next)).map((option) => ({ name: option.name,
        from: shownValue(option, baseOf(option)), to: shownValue(option, next), takesEffect: option.takesEffect })
      )
    },

    /** `config`: of a plan */
    adopt (config: Config) {
      current = config
    },

    memory (): RememberedChange[] {
      return OPTIONS.filter(isChanged).map((option) => ({ name: option.name, value: valueOf(current, option),
        configured: valueOf(configured, option) })
      )
    },

    /**
     * Applies the changes of the master before, but for options that were configured anew since or that this version
     * refuses.
     */
    restore (remembered: RememberedChange[]) {
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

  function toSetting (option: Option): Setting {
    const { name, fallback = null, description, expected, unit, takesEffect, isSecret } = option
    const origin = originOf(configured, name) ?? UNSET
    return { name, value: shownValue(option, current), ...(isChanged(option) ? CHANGED : origin),
      configured: isChanged(option) ? { value: shownValue(option, configured), ...origin } : null, default: fallback,
      description, expected, unit, takesEffect, isSecret, isUsed: isUsed(current.runtime, name) }
  }

  function isChanged (option: Option) {
    return !isSame(option, configured, current)
  }
}

function isSame (option: Option, one: Partial<Config>, other: Partial<Config>) {
  return isDeepStrictEqual(valueOf(one, option), valueOf(other, option))
}

function shownValue (option: Option, config: Partial<Config>) {
  const value = option.isSecret ? null : valueOf(config, option) ?? null
  return typeof value === 'string' ? withoutUrlSecrets(value) : value
}
