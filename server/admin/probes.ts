import { z } from 'zod'
import { APP_NAME, findName, type Apps } from '../host/api-apps.ts'
import { operation, type Call, type Operation, type Resource } from '../api/endpoint.ts'
import { isReady } from '../words/health.ts'
import { areAllReady, isAppReady, sendAlive, sendReady } from './probe-answers.ts'
import type { Deck } from '../deck.ts'
import type { Role } from '../api/roles.ts'

const TEXT = 'text/plain'

/** For load balancers and probes: public, and says nothing but yes or no. */
export function probeResources ({ deck }: { deck: Pick<Deck, 'snapshot'> }): Record<string, Resource> {
  return { '/healthz': { GET: aliveProbe({ name: 'isAlive', summary: 'Tells whether the master is running' }) },
    '/readyz': {
      GET: readyProbe({ name: 'isReady', summary: 'Tells whether every wanted worker is ready or has finished',
        isReady: () => isReady(deck.snapshot()) })
    } }
}

/**
 * A host answers them for itself and for each of its apps. Strangers do not learn which apps there are: whether one is
 * ready is told to those who have a role for it.
 */
export function hostProbeResources ({ apps }: { apps: Pick<Apps, 'states' | 'opened'> }): Record<string, Resource> {
  const path = { app: APP_NAME }
  return { '/healthz': { GET: aliveProbe({ name: 'isAlive', summary: 'Tells whether the host is running' }) },
    '/readyz': {
      GET: readyProbe({ name: 'isReady', summary: 'Tells whether every app that should run is ready or has finished',
        isReady: () => areAllReady(apps) })
    },
    '/apps/:app/healthz': {
      GET: aliveProbe({ name: 'isAppAlive', summary: 'Tells whether the host is running, as an app that is alone does',
        path })
    },
    '/apps/:app/readyz': {
      GET: readyProbe({ name: 'isAppReady',
        summary: 'Tells whether every wanted worker of an app is ready or has finished', path, role: 'viewer',
        problems: ['not-found'], isReady: ({ req, auth }) => isAppReady(apps, findName(apps, req.params.app, auth)) })
    } }
}

function aliveProbe (asked: Pick<Operation, 'name' | 'summary' | 'path'>) {
  return operation({ ...asked, role: null, produces: [], answer: { [TEXT]: z.literal('ok\n') }, handle ({ res }) {
    sendAlive(res)
    return undefined
  } })
}

function readyProbe (
  { isReady, ...asked }: Pick<Operation, 'name' | 'summary' | 'path' | 'problems'> & { role?: Role,
    isReady: (call: Call) => boolean }
) {
  return operation({ role: null, ...asked, produces: [], answer: { [TEXT]: z.literal('ready\n') },
    others: { 503: { [TEXT]: z.literal('not ready\n') } }, handle (call) {
    sendReady(call.res, isReady(call))
    return undefined
  } })
}
