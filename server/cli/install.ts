import path from 'node:path'
import { DeckError } from '../errors.ts'
import { hostFolder } from '../system/host-folder.ts'
import { whyPathDistrusted } from '../system/trust.ts'
import { userId, userName } from '../system/user.ts'
import { hostUnitFiles } from '../systemd/host-unit.ts'
import { createInstallation, unitFolder } from '../systemd/installation.ts'
import { createSystemctl, type Systemctl } from '../systemd/systemctl.ts'
import { findRunning } from './find-master.ts'
import { splitFlags } from './host-start.ts'
import { findHost } from './host.ts'
import { checkedScope, serviceName, systemdService, type Service, type UnitOptions, noUser, userOf } from './systemd.ts'
import type { Terminal } from './program.ts'
import type { Scope, UnitFile } from '../systemd/unit.ts'

type InstallOptions = { scope?: string, dryRun?: boolean, force?: boolean }

const DONE = Object.freeze({ installed: 'is installed and runs', replaced: 'is replaced and runs',
  unchanged: 'is already installed, and runs' })

/**
 * Has systemd run an app, now and at every boot; or the host with all its apps, where nothing is said about an app.
 * @throws {DeckError} usage, invalid-config, unknown-option, entry-not-found, not-possible, forbidden, master-running,
 * start-failed; nothing has changed then
 */
export async function installCommand (
  { scope: given, dryRun = false, force = false, ...options }: UnitOptions & InstallOptions,
  terminal: Terminal
) {
  const scope = scopeOf(given)
  const { systemctl, installation } = openPlace(scope, terminal)
  checkLasting(terminal.script)
  const isHost = await isAboutHost(options, terminal)
  const app = isHost ? null : await systemdService({ ...options, scope }, terminal)
  const { name, files } = app ?? await hostService({ ...options, scope }, terminal)
  if (dryRun) return terminal.stdout.write(planText(installation.plan(files)))
  await checkPlace(scope, systemctl)
  if (!await installation.isRunning(name)) app ? checkAlone(app, terminal) : checkNoHost(terminal.env)
  const outcome = await installation.install(name, files, { isForced: force })
  terminal.stdout.write(
    `${
      [`${name}.service ${DONE[outcome]}: ${installation.placeOf(files[0].file)}`, ...app
        ? [`  status     clusterdeck status --data-dir ${app.dataDir}`,
          `  deploy     ${systemctl.line('reload', `${name}.service`)}`]
        : ['  apps       clusterdeck ls'], `  log        ${systemctl.logLine(`${name}.service`)}`,
        `  uninstall  clusterdeck uninstall${app ? ` --name ${name}` : ''}${
          given === undefined ? '' : ` --scope ${scope}`
        }`].join('\n')
    }\n`
  )
  if (scope === 'user') await tellOfLingering(systemctl, terminal)
}

/**
 * Undoes what `install` has done.
 * @throws {DeckError} usage, invalid-config, unknown-option, entry-not-found, not-possible, forbidden, start-failed
 */
export async function uninstallCommand (
  { scope: given, dryRun = false, force = false, app, name: givenName = app, entry, config }: { entry?: string,
    config?: string, app?: string, name?: string } & InstallOptions,
  terminal: Terminal
) {
  const scope = scopeOf(given)
  const { systemctl, installation } = openPlace(scope, terminal)
  const isHost = [entry, config, givenName].every((each) => each === undefined)
  const name = isHost
    ? HOST_UNIT
    : givenName === undefined
    ? await nameOfApp({ entry, config }, terminal)
    : serviceName(givenName, { entry: '', cwd: '' })
  if (dryRun) {
    const { files, lines } = installation.planRemoval(name)
    return terminal.stdout.write(
      files.length === 0
        ? notInstalledText(name, scope)
        : `${[...lines, ...files.map((file) => `rm ${file}`)].join('\n')}\n`
    )
  }
  await checkPlace(scope, systemctl)
  const removed = await installation.uninstall(name, { isForced: force })
  terminal.stdout.write(
    removed.length === 0
      ? notInstalledText(name, scope)
      : `${name}.service is stopped and removed: ${removed.join(', ')}\n`
  )
}

/** @throws {DeckError} usage */
function scopeOf (given: unknown): Scope {
  return checkedScope(given ?? (userId() === 0 ? 'system' : 'user'))
}

/** @throws {DeckError} not-possible */
function checkLasting (script: string) {
  if (!script.includes('/_npx/')) return
  throw new DeckError('not-possible',
    'this clusterdeck runs from the cache of npx, which npm may clear at any time: npm install clusterdeck first')
}

function openPlace (scope: Scope, { env }: Terminal) {
  const systemctl = createSystemctl({ scope, env })
  return { systemctl, installation: createInstallation({ folder: unitFolder(scope, env), systemctl }) }
}

/** @throws {DeckError} forbidden, not-possible */
async function checkPlace (scope: Scope, systemctl: Systemctl) {
  if (scope === 'system' && userId() !== 0)
    throw new DeckError('forbidden',
      `--scope system: expected root, received the user ${userName()}; use sudo, or --scope user`)
  await systemctl.check()
}

/** Two decks cannot share a data folder, or the ports of an app. */
function checkAlone ({ config, dataDir }: Service, { env }: Terminal) {
  for (const folder of new Set([config.dataDir, dataDir])) {
    const pid = findRunning(folder, env)
    if (pid !== null)
      throw new DeckError('master-running',
        `a deck (pid ${pid}) already runs on ${folder}: first run "clusterdeck stop --data-dir ${folder}"`)
  }
}

async function nameOfApp ({ entry, config }: { entry?: string, config?: string }, { cwd }: Terminal) {
  const reason = whyPathDistrusted(path.join(cwd, 'package.json'))
  if (reason !== null)
    throw new DeckError('usage',
      `--name: expected the name of the service: ${reason}, so somebody else could choose what is removed`)
  const { loadConfig } = await import('../config/config.ts')
  const found = await loadConfig({ flags: { entry, config }, env: {}, cwd })
  return serviceName(undefined, found)
}

function planText ({ text, lines }: { text: string, lines: string[] }) {
  return `${text}\n# then\n${lines.map((line) => `# ${line}\n`).join('')}`
}

function notInstalledText (name: string, scope: Scope) {
  const place = scope === 'system'
    ? 'the system (for your user: --scope user)'
    : 'this user (for the system: --scope system)'
  return `${name}.service is not installed for ${place}\n`
}

async function tellOfLingering (systemctl: Systemctl, { stderr }: Terminal) {
  if (await systemctl.lingers(userId())) return
  const username = userName()
  stderr.write(
    `clusterdeck: it starts when ${username} logs in and ends with the last session; to start it at boot: loginctl enable-linger ${username}\n`
  )
}

/** The name of the unit of a host. */
const HOST_UNIT = 'clusterdeck'

/**
 * Tells whether somebody who names no entry means the host: nothing is said about an app.
 * @param options of `install`, without those of the installation
 */
async function isAboutHost ({ entry, scope, user, ...flags }: Record<string, unknown>, { cwd }: { cwd: string }) {
  if (entry !== undefined) return false
  const { flags: ofApp } = await splitFlags(flags, cwd)
  return Object.keys(ofApp).length === 0
}

/**
 * Makes the unit with which systemd runs the host.
 * @throws {DeckError} usage, invalid-config
 */
async function hostService ({ scope, user, ...flags }: Record<string, unknown> & { scope: Scope, user?: string },
  { env, cwd, script }: Terminal): Promise<{ name: string, files: UnitFile[] }>
{
  const { ofHost } = await splitFlags(flags, cwd)
  // Another user has another folder.
  const isNamed = user === undefined && Boolean(env.CLUSTERDECK_HOST_DIR || env.XDG_STATE_HOME)
  const files = hostUnitFiles({
    scope,
    name: HOST_UNIT,
    node: process.execPath,
    script,
    options: ofHost,
    // systemd tells a service its home, where the list is, only if its user is named.
    user: scope === 'system' ? userOf(user) ?? userName() : noUser(user),
    folder: isNamed ? hostFolder(env) : null
  })
  return { name: HOST_UNIT, files }
}

/** @throws {DeckError} master-running */
function checkNoHost (env: Terminal['env']) {
  const host = findHost(env)
  if (host === null) return
  const { pid } = host.recipient?.processes[0] ?? {}
  throw new DeckError('master-running',
    `the host (pid ${pid}) already runs: first run "clusterdeck down --all"; the unit brings its apps back`)
}
