import type { Channel } from './channel.ts'
import type { Requests } from './requests.ts'

const MAX_REQUESTS = 100
const MAX_METHOD_CHARS = 20
const MAX_PATH_CHARS = 500

/** `path`: without the query; `isHanging`: the loop of its worker hangs in what it asks for */
export type OpenRequest = { method: string, path: string, ageMs: number, isHanging?: boolean }
/** By this name of the process the master asks a worker that hangs for its requests, through the inspector. */
const ASKED_BY_INSPECTOR = Symbol.for('clusterdeck.requests')

/** Cuts the list of requests in flight for the master, whatever a client has sent. `requests`: oldest first. */
export function listRequests (requests: readonly OpenRequest[]): OpenRequest[] {
  return requests.slice(0, MAX_REQUESTS).map(({ method, path, ageMs }) => ({ method: method.slice(0, MAX_METHOD_CHARS),
    path: path.slice(0, MAX_PATH_CHARS), ageMs: Math.round(ageMs) })
  )
}

/** Tells the master what is in flight whenever it asks. */
export function answerRequestLists (channel: Channel, requests: Pick<Requests, 'inFlight'>) {
  channel.on('list-requests', ({ id }) => {
    const all = requests.inFlight()
    channel.send({ type: 'requests', id, requests: listRequests(all), total: all.length })
  })
  Object.defineProperty(process, ASKED_BY_INSPECTOR, { value: (hanging: unknown) => {
    const all = requests.inFlight()
    return JSON.stringify(
      listRequests(all).map((request, index) => ({ ...request,
        isHanging: hanging != null && all[index].response?.req === hanging })
      )
    )
  } })
}
