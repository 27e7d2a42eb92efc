import { z } from 'zod'
import { CHANGE } from '../config/options.ts'
import { operation, type Resource } from './endpoint.ts'
import { listOf } from './fields.ts'
import { checkMatch, IF_MATCH, tagOf } from './preconditions.ts'
import type { Deck } from '../deck.ts'

export type Setting = z.infer<typeof SETTING>
const VALUE = z.unknown().describe('null: nothing is set, or the value is secret')
const FROM = z.string().nullable().describe('the file, the variable or the flag')
const SOURCES = ['default', 'file', 'environment', 'flag', 'program'] as const

const SETTING = z.strictObject({
  name: z.string().meta({ description: 'its path in a config file', examples: ['drain.deadlineMs'] }),
  value: VALUE,
  source: z.enum([...SOURCES, 'operator']).describe(
    'where the value comes from; `operator`: it was changed after the start'
  ),
  from: FROM,
  configured: z.strictObject({ value: VALUE, source: z.enum(SOURCES), from: FROM }).nullable().describe(
    'what it was at the start, if it was changed since; null: it was not'
  ),
  default: z.unknown(),
  description: z.string(),
  expected: z.string(),
  unit: z.enum(['ms', 'bytes']).nullable().describe('of a number'),
  takesEffect: z.enum(['now', 'deploy', 'start']).describe(
    'when a change counts. `now`: at once, by PATCH /config; `deploy`: with the next deploy, which reads it again; `start`: with the next start of the master'
  ),
  isSecret: z.boolean().describe('whether its value may hold a secret; it is then not shown'),
  isUsed: z.boolean().describe(
    'false: it means nothing for the program that runs: it is for Node.js alone and the program is another one, or the other way round'
  )
}).meta({ id: 'Setting' })

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
