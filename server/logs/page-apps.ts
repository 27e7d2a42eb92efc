import { appLines, OF_APPS, runningNames, type LoggedApps } from './api-apps.ts'
import { joinedLogsModel } from './page-joined.ts'
import { withListsJoined } from './page.ts'
import type { Powers } from '../dashboard/powers.ts'

export async function appLogsModel (
  { apps, can, ...asked }: { apps: LoggedApps, can: Powers, params: URLSearchParams, now: () => number }
) {
  const chosen = withListsJoined(asked.params).get('app')?.split(',') ?? []
  return { choices: { apps: runningNames(apps, can).map((name) => ({ name, isChosen: chosen.includes(name) })) },
    ...await joinedLogsModel({ whose: 'app', field: OF_APPS, poll: '/api/v1/host/logs',
      find: (query) => appLines(apps, query, can), urlOn: (name, path) => `/apps/${name}${path}` }, asked) }
}
