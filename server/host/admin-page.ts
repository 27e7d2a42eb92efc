import { createCertificate } from '../admin/certificate.ts'
import { roomWithin } from '../admin/connections.ts'
import { createAdmin } from '../admin/listener.ts'
import { originOf, type Config, type HostConfig } from '../config/config.ts'
import { descriptorLimit } from '../system/descriptors.ts'
import type { Host } from './host.ts'

/** Another deck may have the default port, so the next ones are tried. */
const PORTS_TO_TRY = 100

export type AdminPort = Awaited<ReturnType<typeof openAdminPort>>

/**
 * Opens the admin port.
 * @throws {import('../errors.ts').DeckError} port-in-use, listen-failed, invalid-config
 */
export async function openAdminPort ({ config, token, onRenewed, site }: {
  config: Config | HostConfig,
  token: string,
  /** the certificate is another one now */
  onRenewed: () => void,
  /** what is shown */
  site: Pick<Parameters<typeof createAdmin>[0], 'apps' | 'events' | 'history'>
}, { place, log, terminal, closers }: Pick<Host, 'place' | 'log' | 'terminal' | 'closers'>) {
  const onError = (error: unknown) => log.error({ err: error }, 'a renewed certificate could not be taken')
  const certificate = openCertificate(config.admin.tls, { onRenewed: tellRenewed, onError })
  const admin = createAdmin({ ...site, token, ...config.admin, ...place,
    portsToTry: originOf(config, 'admin.port') ? 1 : PORTS_TO_TRY, certificate,
    maxConnections: roomWithin(descriptorLimit()), log })
  const { url, publicUrl, port, socket } = await admin.listen()
  if (place.port !== 0 && !place.socket && port !== place.port)
    terminal.quote(`port ${place.port} is in use, so the admin page is on ${port} (option --admin-port)`)
  place.hold(socket)
  closers.add(admin, ({ close }) => close())
  let fingerprint = certificate?.fingerprint ?? null
  return { url, publicUrl, fingerprint: () => fingerprint, signInLink: admin.signInLink, ask: admin.ask,
    close: admin.close }

  function tellRenewed (renewed: string) {
    fingerprint = renewed
    onRenewed()
  }
}

function openCertificate ({ cert, key }: Config['admin']['tls'],
  hooks: Omit<Parameters<typeof createCertificate>[1], 'timers'>)
{
  return cert && key ? createCertificate({ cert, key }, { ...hooks, timers: globalThis }) : null
}
