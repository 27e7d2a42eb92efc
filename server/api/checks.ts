import { z } from 'zod'
import { SEVERITIES } from '../doctor/finding.ts'
import { operation, type Resource } from './endpoint.ts'
import { COUNT, TIME } from './fields.ts'
import type { Deck } from '../deck.ts'

export type Report = z.infer<typeof REPORT>

const MEND = z.strictObject({
  how: z.enum(['command', 'option', 'flags', 'code']).describe('`command`: for a shell; `option`: for the config file; `flags`: for the command that starts the app; `code`: what to change, in words'),
  text: z.string().meta({ description: 'one line', examples: ["releases: { mode: 'folder', shared: ['.env', 'uploads/'] }"] }),
  where: z.string().nullable().describe('the folder of a command, the config file, or the command that takes the flags')
}).meta({ id: 'Mend' })

const CHECK = z.strictObject({
  id: z.string().meta({ description: 'of the check; it stays the same', examples: ['in-place'] }),
  severity: z.enum(SEVERITIES).describe('`unknown`: it cannot be known on this machine, or not yet'),
  title: z.string(),
  why: z.string().describe('why it matters, in one sentence; may be empty'),
  mend: z.array(MEND).describe('the lines that mend it, in this order')
}).meta({ id: 'Check' })

const REPORT = z.strictObject({
  checkedAt: TIME,
  isRunning: z.boolean().describe('whether the app was running'),
  problems: COUNT.describe('how many checks are errors or warnings'),
  items: z.array(CHECK).describe('the worst first')
}).meta({ id: 'Checks' })

/** What could drop a request or lose a release. */
export function checkResources ({ deck }: { deck: Pick<Deck, 'examine'> }): Record<string, Resource> {
  return {
    '/checks': {
      GET: operation({
        name: 'listChecks',
        summary: 'Checks the app and the machine, and says what could drop a request or lose a release',
        description: 'It looks through the folder of the app, at the machine and at what the workers have shown so far, for a few seconds at most. It changes nothing.',
        role: 'viewer',
        cli: 'clusterdeck doctor',
        answer: REPORT,
        handle: async () => ({ body: await deck.examine() })
      })
    }
  }
}
