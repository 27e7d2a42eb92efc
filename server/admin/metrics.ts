import { z } from 'zod'
import { operation, type Resource } from '../api/endpoint.ts'
import { CONTENT_TYPE } from '../telemetry/prometheus-text.ts'
import { hostMetricsText, metricsTextOf } from './metrics-text.ts'
import type { Auth } from '../api/roles.ts'
import type { Apps } from '../host/api-apps.ts'

const TEXT = 'text/plain'

/** Needs a token, as everything does: `authorization: { credentials_file: …/admin.token }`. */
export function metricsResources ({ deck }: { deck: Parameters<typeof metricsTextOf>[0] }): Record<string, Resource> {
  return metricsResource(() => metricsTextOf(deck))
}

export function hostMetricsResources ({ apps }: { apps: Apps }): Record<string, Resource> {
  return metricsResource((auth) => hostMetricsText(apps, auth))
}

function metricsResource (read: (auth: Auth) => Promise<string>) {
  return {
    '/metrics': {
      GET: operation({ name: 'getMetrics', summary: 'Returns all metrics in the format of Prometheus', role: 'viewer',
        produces: [], answer: { [TEXT]: z.string() }, async handle ({ res, auth }) {
        const text = await read(auth)
        res.type(CONTENT_TYPE).send(text)
        return undefined
      } })
    }
  }
}
