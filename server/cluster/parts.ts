import { createAcceptFairness } from './accept-fairness.ts'
import { createAppMessages } from './app-messages.ts'
import { createBoots } from './boots.ts'
import { createLoadedFiles } from './loaded-files.ts'
import { createOpenRequests } from './open-requests.ts'
import { createPoolSockets } from './pool-sockets.ts'
import { createRequestFairness } from './request-fairness.ts'
import { createRolloutTurn } from './rollout-turn.ts'
import { createStandbys } from './standbys.ts'
import { createWatchdog } from './watchdog.ts'
import type { Cluster } from './cluster.ts'

export type Parts = ReturnType<typeof createParts>

/** The parts of a cluster that hear by themselves when a worker has left or is ready, and when an input is done. */
export function createParts (cluster: Cluster) {
  return { rolloutTurn: createRolloutTurn(cluster), boots: createBoots(cluster), standbys: createStandbys(cluster),
    sockets: createPoolSockets(cluster), watchdog: createWatchdog(cluster), openRequests: createOpenRequests(cluster),
    acceptFairness: createAcceptFairness(cluster), requestFairness: createRequestFairness(cluster),
    noteFiles: createLoadedFiles(cluster), hearFromApp: createAppMessages(cluster) }
}
