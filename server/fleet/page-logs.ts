import { OF_MEMBER, VIEWER } from '../api/ask.ts'
import { joinedLogsFile, joinedLogsModel, type Kind } from '../logs/page-joined.ts'
import { fleetLines } from './api-logs.ts'
import { hostChoices, urlOn } from './page-members.ts'
import type { FileType } from '../logs/page.ts'
import type { FleetDeck } from './api.ts'

type Asked = { deck: FleetDeck, params: URLSearchParams, now: () => number }

export async function fleetLogsModel ({ deck, ...asked }: Asked) {
  return { choices: hostChoices(deck), ...await joinedLogsModel(ofMembers(deck), asked) }
}

export function fleetLogsFile ({ deck, ...asked }: Asked & { type: FileType }): Promise<string> {
  return joinedLogsFile(ofMembers(deck), asked)
}

function ofMembers (deck: FleetDeck): Kind {
  const members = deck.fleet?.status().members ?? []
  return { whose: 'member', field: OF_MEMBER, poll: '/api/v1/logs',
    find: ({ member = '*', ...query }) => fleetLines(deck, { ...query, member }, VIEWER),
    urlOn: (name, path) => urlOn(members.find(({ member }) => member === name), path) }
}
