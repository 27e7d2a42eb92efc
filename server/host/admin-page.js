import { createCertificate } from '../admin/certificate.js'
import { roomWithin } from '../admin/connections.js'
import { createAdmin } from '../admin/listener.js'
import { originOf } from '../config/config.js'
import { descriptorLimit } from '../system/descriptors.js'
import { waitAtMost } from '../system/wait-at-most.js'
import { createAnnouncement } from './announcement.js'

/** Another deck may have the default port, so the next ones are tried. */
const PORTS_TO_TRY = 100
/** The workers come first: the app is to answer soon. */
export const LOAD_SITE_WITHIN_MS = 3000

/** @typedef {Awaited<ReturnType<typeof openAdminPage>>} AdminPage */
/** @typedef {Awaited<ReturnType<typeof openAdminPort>>} AdminPort */

/**
 * Opens the admin port of a master with one app, and enters it in the list of all decks of this user.
 * @param {import('../app/app.js').App} app @param {import('./host.js').Host} host
 * @throws {import('../errors.js').DeckError} port-in-use, listen-failed, invalid-config
 */
export async function openAdminPage (app, host) {
  const { config, deck, logs, supervisor } = app
  const token = app.dataDir.token()
  const port = await openAdminPort({ config, token, onRenewed: tellRenewed, site: { deck, history: deck.history, loadAfter: waitAtMost(supervisor.running, LOAD_SITE_WITHIN_MS) } }, host)
  const { announce, register, withdraw } = createAnnouncement(app, host, () => ({
    adminUrl: port.url,
    publicUrl: config.admin.publicUrl ? port.publicUrl : null,
    fingerprint: port.fingerprint(),
    host: null
  }))
  logs.start()
  register()
  host.closers.add(withdraw, (_, { handsOver }) => { if (!handsOver) withdraw() })
  return { ...port, token, announce }

  function tellRenewed () {
    announce()
    register()
  }
}

/**
 * Opens the admin port.
 * @param {object} parts
 * @param {import('../config/config.js').Config | import('../config/config.js').HostConfig} parts.config
 * @param {string} parts.token
 * @param {() => void} parts.onRenewed  the certificate is another one now
 * @param {Pick<Parameters<typeof createAdmin>[0], 'deck' | 'apps' | 'events' | 'history' | 'loadAfter'>} parts.site  what is shown
 * @param {Pick<import('./host.js').Host, 'place' | 'log' | 'terminal' | 'closers'>} host
 * @throws {import('../errors.js').DeckError} port-in-use, listen-failed, invalid-config
 */
export async function openAdminPort ({ config, token, onRenewed, site }, { place, log, terminal, closers }) {
  const onError = (/** @type {unknown} */ error) => log.error({ err: error }, 'a renewed certificate could not be taken')
  const certificate = openCertificate(config.admin.tls, { onRenewed: tellRenewed, onError })
  const admin = createAdmin({
    ...site,
    token,
    ...config.admin,
    ...place,
    portsToTry: originOf(config, 'admin.port') ? 1 : PORTS_TO_TRY,
    certificate,
    maxConnections: roomWithin(descriptorLimit()),
    log
  })
  const { url, publicUrl, port, socket, loaded } = await admin.listen()
  if (place.port !== 0 && !place.socket && port !== place.port) terminal.quote(`port ${place.port} is in use, so the admin page is on ${port} (option --admin-port)`)
  place.hold(socket)
  closers.add(admin, ({ close }) => close())
  let fingerprint = certificate?.fingerprint ?? null
  return { url, publicUrl, loaded, fingerprint: () => fingerprint, signInLink: admin.signInLink, ask: admin.ask }

  /** @param {string} renewed */
  function tellRenewed (renewed) {
    fingerprint = renewed
    onRenewed()
  }
}

/** @param {import('../config/config.js').Config['admin']['tls']} files @param {Omit<Parameters<typeof createCertificate>[1], 'timers'>} hooks */
function openCertificate ({ cert, key }, hooks) {
  return cert && key ? createCertificate({ cert, key }, { ...hooks, timers: globalThis }) : null
}
