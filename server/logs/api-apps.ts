import { z } from 'zod'
import { DeckError } from '../errors.ts'
import { operation, type Resource } from '../api/endpoint.ts'
import { pageOf } from '../api/fields.ts'
import { visibleNames, type Auth } from '../api/roles.ts'
import { findName, whyNotRunning, type Apps } from '../host/api-apps.ts'
import { integerParam } from '../api/input.ts'
import { joinLines, MAX_JOINED_LINES, type JoinedLines } from './api-joined.ts'
import { findLines, LOG_LINE, lineFilters, SELECTION, type Query } from './api-lines.ts'

/** Output of several apps of a host. */
export type LoggedApps = Pick<Apps, 'states' | 'view' | 'opened' | 'leftLogs'>
/** `app`: default: all that run and that this person may see */
type Wanted = Query & { app?: string[] }

const NAMES = z.array(z.string())
const MAX_NAMES_CHARS = 6000

export const OF_APPS = z.string().max(MAX_NAMES_CHARS).transform((text) => [...new Set(text.split(','))]).optional()
  .describe('the names of apps, separated by commas; default: all that run')

export function hostLogResources ({ apps, now }: { apps: LoggedApps, now: () => number }): Record<string, Resource> {
  return {
    '/host/logs': {
      GET: operation({ name: 'listHostLogLines',
        summary: 'Returns the last lines of several apps of the host, or the matching ones, oldest first',
        description:
          `At most ${MAX_JOINED_LINES} lines of all of them together; \`next\` asks for those before. Of an app that does not run, what it has left in its files.`,
        role: 'viewer', cli: 'clusterdeck logs',
        query: z.strictObject({ app: OF_APPS, stream: SELECTION.stream, lines: integerParam(1, MAX_JOINED_LINES),
          ...lineFilters(now) }), problems: ['not-found'],
        answer: pageOf(LOG_LINE.extend({ app: z.string() }).meta({ id: 'AppLogLine' })).extend({
          apps: z.strictObject({ silent: NAMES.describe('did not answer in time'),
            refused: z.array(z.strictObject({ app: z.string(), problem: z.string() })),
            cut: NAMES.describe('were searched only in the newest part of their files') }).describe('what is left out')
        }), async handle ({ query, auth }) {
        const { hosts: { silent, refused, cut }, ...page } = await appLines(apps, query, auth)
        return {
          body: { ...page,
            apps: { silent, refused: refused.map(({ member, problem }) => ({ app: member, problem })), cut } }
        }
      } })
    }
  }
}

/** @throws {DeckError} not-found, also for an app that this person may not see; invalid-query */
export async function appLines (apps: LoggedApps, { app, ...query }: Wanted,
  person: Pick<Auth, 'apps'>): Promise<JoinedLines<'app'>>
{
  const names = app?.map((name) => findName(apps, name, person)) ?? runningNames(apps, person)
  return await joinLines('app', names, query, async (name, wanted) => {
    const opened = apps.opened(name)
    if (opened) return await opened.run(() => findLines(opened.deck, wanted))
    const left = apps.leftLogs(name)
    if (left === null) throw new DeckError('app-not-running', whyNotRunning(apps.view(name)))
    return await findLines(left, wanted)
  })
}

/** @returns of the apps whose lines this person may see */
export function runningNames (apps: LoggedApps, person: Pick<Auth, 'apps'>): string[] {
  return visibleNames(apps, person).filter((name) => apps.opened(name))
}
