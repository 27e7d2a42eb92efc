import { finding, inCode, type Check } from './finding.ts'
import { optionLine } from './option-line.ts'
import type { Facts } from './facts.ts'

const SOCKET_IO = 'socket.io'
const SESSION = 'express-session'
const ONLY_WEBSOCKET = /transports\s*:\s*\[\s*['"]websocket['"]\s*\]/
const STORE = /\bstore\b/
const COUNTS = /^prom-client$|prometheus|^express-prom-bundle$|^fastify-metrics$|^swagger-stats$/
const PROM_CLIENT = 'prom-client'
const ANSWERS_METRICS = /\.metrics\(\)|['"`]\/metrics\b/
const OF_ALL_WORKERS = /\bclusterMetrics\b/

/** whether workers keep for themselves what belongs to a client */
export const checkSharedState: Check = (facts) => {
  const { config, package: { dependencies }, running } = facts
  const workers = running?.desiredWorkers ?? config.workers
  const found = [...(running?.unanswered ?? []).map(ofUnanswered),
    ...dependencies.includes(SOCKET_IO) && workers > 1 ? ofSocketIo(facts) : [],
    ...dependencies.includes(SESSION) ? ofSessions(facts) : [], ...workers > 1 ? ofMetrics(facts) : []]
  return found.length > 0
    ? found
    : [finding('shared-state', 'ok', 'No package is known here that keeps clients in one worker')]
}

function ofUnanswered ({ library, message }: { library: string | null, message: string }) {
  return finding(
    'unanswered',
    'warning',
    library === null ? message : `${library} talks to a primary of the app's own`,
    'Nobody answers it, so what the workers are to share is not shared.',
    // The advice stands behind what the library has done, and may have a colon too.
    library === null ? [] : [inCode(message.replace(/^.*? under clusterdeck: /, ''))]
  )
}

function ofSocketIo (facts: Facts) {
  const { config, files, canStick } = facts
  if (config.dispatch === 'sticky') return [finding('socket-io', 'ok', 'Clients of Socket.IO stay with a worker')]
  if (files && ONLY_WEBSOCKET.test(files.code))
    return [finding('socket-io', 'ok', 'Socket.IO takes WebSockets alone, which stay with their worker')]
  return [
    finding('socket-io', 'warning', 'Socket.IO needs all requests of a client at one worker',
      'Its long polling asks several times, and each request may go to another worker, which answers 400.', [canStick
      ? optionLine(facts, { dispatch: 'sticky' })
      : inCode('Let server and clients use WebSockets alone: transports: [\'websocket\']')])
  ]
}

function ofSessions ({ files }: Facts) {
  if (!files?.isWhole || !files.code.includes(SESSION))
    return [finding('sessions', 'unknown', 'Where express-session keeps its sessions is not known')]
  if (STORE.test(files.code)) return [finding('sessions', 'ok', 'express-session has a store of its own')]
  return [
    finding('sessions', 'warning', 'Sessions are in the memory of one worker',
      'express-session has no store here, so a client is signed out at each deploy, and whenever another worker answers.',
      [inCode('Give session({ … }) a store outside of the workers, such as connect-redis or connect-pg-simple')])
  ]
}

function ofMetrics ({ package: { dependencies }, files }: Facts) {
  const counts = dependencies.find((name) => COUNTS.test(name))
  const code = files?.code ?? ''
  // What only counts is summed up by the admin page. Packages that are more than prom-client answer by themselves.
  if (counts === undefined || OF_ALL_WORKERS.test(code) || (counts === PROM_CLIENT && !ANSWERS_METRICS.test(code)))
    return []
  return [
    finding('own-metrics', 'warning', 'The app\'s own /metrics have the figures of one worker',
      `Each time another worker may answer, so what ${counts} counts seems to fall and to rise.`, [
      inCode(
        'Have Prometheus read /metrics of the admin page, where prom-client is summed over all workers, or answer with aggregatorRegistry.clusterMetrics()'
      )
    ])
  ]
}
