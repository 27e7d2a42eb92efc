import { OF_MEMBER, VIEWER } from '../api/ask.ts'
import { joinedLogsModel } from '../logs/page-joined.ts'
import { fleetLines } from './api-logs.ts'
import { hostChoices, urlOn } from './page-members.ts'
import type { FleetDeck } from './api.ts'

export async function fleetLogsModel (
  { deck, ...asked }: { deck: FleetDeck, params: URLSearchParams, now: () => number }
) {
  const members = deck.fleet?.status().members ?? []
  return { choices: hostChoices(deck),
    ...await joinedLogsModel({ whose: 'member', field: OF_MEMBER, poll: '/api/v1/logs',
      find: ({ member = '*', ...query }) => fleetLines(deck, { ...query, member }, VIEWER),
      urlOn: (name, path) => urlOn(members.find(({ member }) => member === name), path) }, asked) }
}
