import { createCertificate } from '../admin/certificate.js'
import { roomWithin } from '../admin/connections.js'
import { createAdmin } from '../admin/listener.js'
import { configFileOf, originOf } from '../config/config.js'
import { descriptorLimit } from '../system/descriptors.js'
import { identifyProcess, pidNamespace } from '../system/process-identity.js'
import { registerDeck, withdrawDeck } from '../system/running-decks.js'
import { waitAtMost } from '../system/wait-at-most.js'

/** Another deck may have the default port, so the next ones are tried. */
const PORTS_TO_TRY = 100
/** The workers come first: the app is to answer soon. */
export const LOAD_SITE_WITHIN_MS = 3000

/** @typedef {Awaited<ReturnType<typeof openAdminPage>>} AdminPage */

/**
 * Opens the admin port, and enters this master in the list of all decks of this user.
 * @param {import('../app/app.js').App} app @param {import('./host.js').Host} host
 * @throws {import('../errors.js').DeckError} port-in-use, listen-failed, invalid-config
 */
export async function openAdminPage ({ config, dataDir, logs, deck, supervisor, startedAt }, { keeper, place, log, terminal, software, closers }) {
  const token = dataDir.token()
  const onError = (/** @type {unknown} */ error) => log.error({ err: error }, 'a renewed certificate could not be taken')
  const certificate = openCertificate(config.admin.tls, { onRenewed: tellRenewed, onError })
  const admin = createAdmin({
    deck,
    history: deck.history,
    token,
    ...config.admin,
    ...place,
    portsToTry: originOf(config, 'admin.port') ? 1 : PORTS_TO_TRY,
    certificate,
    maxConnections: roomWithin(descriptorLimit()),
    loadAfter: waitAtMost(supervisor.running, LOAD_SITE_WITHIN_MS),
    log
  })
  const { url, publicUrl, port, socket } = await admin.listen()
  if (place.port !== 0 && !place.socket && port !== place.port) terminal.quote(`port ${place.port} is in use, so the admin page is on ${port} (option --admin-port)`)
  place.hold(socket)
  closers.add(admin, ({ close }) => close())
  logs.start()
  let fingerprint = certificate?.fingerprint ?? null
  register()
  closers.add(register, (_, { handsOver }) => { if (!handsOver) withdrawDeck({ dataDir: config.dataDir, master: identifyProcess(process.pid) }) })
  return { url, publicUrl, token, signInLink: admin.signInLink, ask: admin.ask, announce }

  /** @param {string} renewed */
  function tellRenewed (renewed) {
    fingerprint = renewed
    announce()
    register()
  }

  /** Tells whoever looks for this master in its data folder all by which it is told from others. No start depends on it. */
  function announce () {
    try {
      dataDir.announce({
        ...identifyProcess(process.pid),
        keeper: identifyKeeper(),
        pidNamespace: pidNamespace(),
        adminUrl: url,
        ...(fingerprint && { fingerprint }),
        startedAt
      })
    } catch (error) {
      log.error({ err: error }, 'this master could not be announced in its data folder')
    }
  }

  /** Enters it in the list of all decks of this user, on which no start depends either. */
  function register () {
    const { entry, cwd } = config
    try {
      registerDeck({
        name: deck.snapshot().app.name,
        entry,
        cwd,
        dataDir: config.dataDir,
        configFile: configFileOf(config),
        adminUrl: url,
        publicUrl: config.admin.publicUrl ? publicUrl : null,
        fingerprint,
        version: software.version,
        startedAt,
        master: identifyProcess(process.pid),
        keeper: identifyKeeper()
      })
    } catch (error) {
      log.warn({ err: error }, 'this deck is not in the list of running decks')
    }
  }

  function identifyKeeper () {
    return keeper.isKept ? identifyProcess(process.ppid) : null
  }
}

/** @param {import('../config/config.js').Config['admin']['tls']} files @param {Omit<Parameters<typeof createCertificate>[1], 'timers'>} hooks */
function openCertificate ({ cert, key }, hooks) {
  return cert && key ? createCertificate({ cert, key }, { ...hooks, timers: globalThis }) : null
}
