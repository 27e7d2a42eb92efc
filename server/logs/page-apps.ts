import { visibleNames } from '../api/roles.ts'
import { appLines, OF_APPS, type LoggedApps } from './api-apps.ts'
import { joinedLogsFile, joinedLogsModel, type Kind } from './page-joined.ts'
import { withListsJoined, type FileType } from './page.ts'
import type { Powers } from '../dashboard/powers.ts'

type Asked = { apps: LoggedApps, can: Powers, params: URLSearchParams, now: () => number }

export async function appLogsModel ({ apps, can, ...asked }: Asked) {
  const chosen = withListsJoined(asked.params).get('app')?.split(',') ?? []
  return { choices: { apps: visibleNames(apps, can).map((name) => ({ name, isChosen: chosen.includes(name) })) },
    ...await joinedLogsModel(ofApps(apps, can), asked) }
}

export function appLogsFile ({ apps, can, ...asked }: Asked & { type: FileType }): Promise<string> {
  return joinedLogsFile(ofApps(apps, can), asked)
}

function ofApps (apps: LoggedApps, can: Powers): Kind {
  return { whose: 'app', field: OF_APPS, poll: '/api/v1/host/logs', find: (query) => appLines(apps, query, can),
    urlOn: (name, path) => apps.opened(name) && `/apps/${name}${path}` }
}
