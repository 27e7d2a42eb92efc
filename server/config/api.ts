import { z } from 'zod'
import { LOADED } from './loaded-schema.ts'
import { CHANGE, SCHEMA } from './options.ts'
import { textOfValue } from './value-text.ts'
import { operation, type Resource } from '../api/endpoint.ts'
import { listOf } from '../api/fields.ts'
import { SETTING, type Setting } from '../api/shapes.ts'
import { checkMatch, IF_MATCH, lastOf, tagOf, type Past } from '../api/preconditions.ts'
import { doerOf } from '../api/roles.ts'
import type { Deck } from '../deck.ts'

const SETTINGS = listOf(SETTING).meta({ id: 'Settings' })

const DESCRIPTION = 'a JSON object of options by their names, such as {"drain.deadlineMs": 10000}'

const WANTED = z.looseObject({}).refine((wanted) => Object.keys(wanted).length > 0).describe(DESCRIPTION)

const SHOWN_WANTED = CHANGE.meta({ description: DESCRIPTION, minProperties: 1,
  examples: [{ 'drain.deadlineMs': 10_000, 'rollout.surge': '25%' }] })

/** Whoever changes a setting here does not wait for the schema. Returns what lets go of it. */
export function lendSchema (): () => void {
  LOADED.schema ??= SCHEMA
  return () => {
    if (LOADED.schema === SCHEMA) LOADED.schema = null
  }
}

/** @returns for If-Match: the state of one setting, which others do not concern */
export function settingState ({ name, value }: Pick<Setting, 'name' | 'value'>): string {
  return `${name}=${value === null ? '' : encodeURIComponent(textOfValue(value))}`
}

function changeOfSetting (history: Past, option: string) {
  const event = lastOf(history, ['config.changed'])
  const change = event?.detail?.changes?.find(({ name }) => name === option)
  return change
    ? `${doerOf(event)} has set it to ${textOfValue(change.to)} since you opened this`
    : 'Somebody has changed it since you opened this'
}

export function configResources (
  { deck, history }: { deck: Pick<Deck, 'settings' | 'configure' | 'stored'>, history: Past }
): Record<string, Resource> {
  return {
    '/config': {
      GET: operation({ name: 'getConfig', summary: 'Lists every option, its value and where the value comes from',
        role: 'viewer', cli: 'clusterdeck config', hasTag: true, answer: SETTINGS, handle: configReply }),

      PATCH: operation({ name: 'changeConfig', form: {}, summary: 'Changes options while the app runs',
        description: 'It changes all of the given options, or none. What is already running keeps its old values.',
        role: 'admin', cli: 'clusterdeck config set {name}={value}', headers: { 'If-Match': IF_MATCH }, body: WANTED,
        shownBody: SHOWN_WANTED, hasTag: true,
        problems: ['precondition-required', 'precondition-failed', 'unknown-option', 'not-possible', 'invalid-config',
          'upgrade-running', 'stopping', 'not-stored'], answer: SETTINGS, async handle ({ seen, body, auth }) {
        checkUnchanged(seen, body)
        deck.configure({ wanted: body, actor: auth.actor })
        await deck.stored()
        return configReply()
      } })
    }
  }

  /** What somebody has seen is all settings, or the one that they change. */
  function checkUnchanged (seen: string | undefined, body: object) {
    const [name] = Object.keys(body)
    if (!seen?.startsWith(`"${name}=`)) return checkMatch(seen, deck.settings.digest(), { isRequired: true })
    const setting = deck.settings.list().find((each) => each.name === name)
    checkMatch(seen, setting ? settingState(setting) : '', { isRequired: true,
      change: () => changeOfSetting(history, name) })
  }

  function configReply () {
    return { headers: { ETag: tagOf(deck.settings.digest()) }, body: { items: deck.settings.list() } }
  }
}
