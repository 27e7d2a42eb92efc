import { formatCount } from '../../public/format.ts'
import { dropIn } from './drop-in.ts'
import { asRoot, command, finding, inCode, type Check } from './finding.ts'
import type { Facts } from './facts.ts'

/** The usual limit of shells and containers in which nobody has set one. */
const LOW = 1024
const ENOUGH = 65_536
/** How many files a worker opens beside the connections of clients. */
const RESERVE = 100
/** From this share of the limit on it is nearly reached. */
const NEARLY = 0.8

/** whether a worker may have as many connections as it needs */
export const checkDescriptors: Check = (facts) => {
  const { machine: { descriptors }, running } = facts
  if (descriptors === null)
    return [finding('descriptors', 'unknown', 'How many files a process may open is not known here')]
  const most = Math.max(0, ...running?.workers.flatMap(({ openConnections }) => openConnections ?? []) ?? [])
  const mend = [mendOf(facts)]
  if (most + RESERVE > descriptors * NEARLY) {
    return [
      finding('descriptors', 'error',
        `A worker has ${formatCount(most)} connections and may open ${formatCount(descriptors)} files`,
        'Each connection is a file; at the limit a worker accepts no more.', mend)
    ]
  }
  if (descriptors <= LOW) {
    return [
      finding('descriptors', 'warning', `A worker may open ${formatCount(descriptors)} files (ulimit -n)`,
        `Each connection is a file, so a worker accepts no more than about ${
          formatCount(Math.max(0, descriptors - RESERVE))
        } of them.`, mend)
    ]
  }
  return [finding('descriptors', 'ok', `A worker may open ${formatCount(descriptors)} files`)]
}

function mendOf ({ machine: { service, isContainer }, user }: Facts) {
  if (service) return dropIn(service, user, { setting: `LimitNOFILE=${ENOUGH}`, file: 'files.conf', then: 'restart' })
  if (isContainer)
    return inCode(`Start the container with room for more: docker run --ulimit nofile=${ENOUGH}:${ENOUGH}`)
  return command(asRoot(user, `prlimit --pid $$ --nofile=${ENOUGH}:${ENOUGH}`), 'the shell that starts the app anew')
}
