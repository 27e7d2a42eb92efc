import { z } from 'zod'
import { CHANGE } from '../config/options.ts'
import { operation, type Resource } from './endpoint.ts'
import { listOf } from './fields.ts'
import { SETTING } from './shapes.ts'
import { checkMatch, IF_MATCH, tagOf } from './preconditions.ts'
import type { Deck } from '../deck.ts'

const SETTINGS = listOf(SETTING).meta({ id: 'Settings' })

const DESCRIPTION = 'a JSON object of options by their names, such as {"drain.deadlineMs": 10000}'

const WANTED = z.looseObject({}).refine((wanted) => Object.keys(wanted).length > 0).describe(DESCRIPTION)

const SHOWN_WANTED = CHANGE.meta({ description: DESCRIPTION, minProperties: 1,
  examples: [{ 'drain.deadlineMs': 10_000, 'rollout.surge': '25%' }] })

/** The settings that the master runs with. */
export function configResources (
  { deck }: { deck: Pick<Deck, 'settings' | 'configure' | 'stored'> }
): Record<string, Resource> {
  return {
    '/config': {
      GET: operation({ name: 'getConfig', summary: 'Lists every option, its value and where the value comes from',
        role: 'viewer', cli: 'clusterdeck config', hasTag: true, answer: SETTINGS, handle: configReply }),

      PATCH: operation({ name: 'changeConfig', summary: 'Changes options while the app runs',
        description: 'It changes all of the given options, or none. What is already running keeps its old values.',
        role: 'admin', cli: 'clusterdeck config set drain.deadlineMs=10000', headers: { 'If-Match': IF_MATCH },
        body: WANTED, shownBody: SHOWN_WANTED, hasTag: true,
        problems: ['precondition-required', 'precondition-failed', 'unknown-option', 'not-possible', 'invalid-config',
          'upgrade-running', 'stopping', 'not-stored'], answer: SETTINGS, async handle ({ req, body, auth }) {
        checkMatch(req, deck.settings.digest(), { isRequired: true })
        deck.configure({ wanted: body, actor: auth.actor })
        await deck.stored()
        return configReply()
      } })
    }
  }

  function configReply () {
    return { headers: { ETag: tagOf(deck.settings.digest()) }, body: { items: deck.settings.list() } }
  }
}
