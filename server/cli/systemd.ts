import net from 'node:net'
import path from 'node:path'
import { packageName } from '../config/app-name.ts'
import { appsOf, DECK_NAME } from '../config/apps.ts'
import { readConfigFile } from '../config/file.ts'
import { TYPED_VARIABLE, typedNode } from '../run-on.js'
import { userId, userName } from '../system/user.ts'
import { joinUnits, unitFiles, type Scope, type UnitFile } from '../systemd/unit.ts'
import { flagOf } from './start.ts'
import { checkedForm, checkedWord, misuse } from './usage.ts'
import type { Config } from '../config/config.ts'
import type { Terminal } from './program.ts'

export type Service = { name: string, files: UnitFile[], config: Config, dataDir: string }

/** The flags of `systemd`; the others are those of `start`, as they were given. */
type OwnOptions = { name?: string, user?: string, scope?: string, socket?: string[], notifyReload?: boolean,
  keeper?: boolean, entry?: string, args?: string[], config?: string, app?: string, dataDir?: string }
export type UnitOptions = OwnOptions & Record<string, unknown>

const SCOPES: readonly Scope[] = ['system', 'user']
/** Where systemd makes the folders of services: StateDirectory= in systemd.exec(5). */
const STATE_FOLDER = '/var/lib'

export async function printUnits (options: UnitOptions, { stdout, env, cwd, script }: Terminal) {
  const { files } = await systemdService(options, { env, cwd, script })
  stdout.write(joinUnits(files))
}

/**
 * Makes the units with which systemd runs `start` with the same options. `script`: the file of this program.
 * @throws {DeckError} usage, invalid-config, unknown-option, entry-not-found
 */
export async function systemdService (options: UnitOptions,
  { env, cwd, script }: { env: Record<string, string | undefined>, cwd: string, script: string }): Promise<Service>
{
  const { keeper, name: givenName, user, scope: givenScope = 'system', socket: sockets = [], notifyReload = false,
    entry, args, ...flags } = options
  const scope = checkedScope(givenScope)
  const [{ loadConfig, originOf }, { OPTIONS }] = await Promise.all([import('../config/config.ts'),
    import('../config/option-list.ts')])
  const typed = typedNode(env)
  // The service will not have the environment of this shell.
  const config = await loadConfig({ flags: { entry, args, ...flags }, env: { [TYPED_VARIABLE]: typed }, cwd })
  const { config: configFile, app, dataDir, ...rest } = flags
  const name = serviceName(givenName ?? app, config)
  // The data folder of a system service is below /var/lib, that of a user's own service beside the app.
  const ownDataDir = dataDir === undefined && scope === 'system' ? null : config.dataDir
  const files = unitFiles({
    scope,
    name,
    node: process.execPath,
    typedNode: typed === process.execPath ? null : typed,
    script,
    // An entry that is looked up at each start and deploy is kept as it was given.
    entry: config.launch ? entry ?? null : config.entry,
    options: [
      ...(configFile === undefined ? [] : ['--config', path.resolve(cwd, configFile)]),
      ...(app === undefined ? [] : ['--app', app]),
      // The commands find the deck by this name, too.
      ...(givenName !== undefined && app === undefined && DECK_NAME.test(givenName) ? ['--name', givenName] : []),
      ...Object.entries(rest).flatMap(([key, value]) => {
        const option = OPTIONS.find((each) => each.key === key)
        return option ? flagOf(option, String(value), cwd) : []
      }),
      ...(keeper === false ? ['--no-keeper'] : []),
      // The journal collects the output of the workers, unless logs.mirror is set.
      ...(originOf(config, 'logs.mirror') === null ? ['--logs-mirror', 'on'] : [])
    ],
    args: args ?? [],
    cwd,
    user: scope === 'system' ? userOf(user) : noUser(user),
    dataDir: ownDataDir,
    sockets: sockets.map(checkedSocket),
    dependsOn: await dependenciesOf(app, configFile, cwd),
    notifyReload,
    config
  })
  return { name, files, config, dataDir: ownDataDir ?? path.join(STATE_FOLDER, name) }
}

async function dependenciesOf (app: string | undefined, configFile: string | undefined,
  cwd: string): Promise<readonly string[]>
{
  const found = app === undefined ? null : await readConfigFile(configFile, cwd)
  return found?.values.apps === undefined ? [] : appsOf(found).get(String(app))?.dependsOn ?? []
}

/** @throws {DeckError} usage */
export function checkedScope (scope: unknown): Scope {
  return checkedWord('--scope', SCOPES, scope)
}

/** Returns the name of its units @throws {DeckError} usage */
export function serviceName (given: string | undefined, config: Pick<Config, 'entry' | 'cwd' | 'launch'>): string {
  return checkedForm('--name', /^\w[\w.-]{0,200}$/, 'a name of letters, digits and . _ -', given ?? nameOf(config))
}

/** Takes the name of the package, else of the file. */
function nameOf ({ entry, cwd, launch }: Pick<Config, 'entry' | 'cwd' | 'launch'>) {
  const name = packageName(launch ? cwd : path.dirname(entry)) ?? path.parse(entry).name
  return name.replace(/^@/, '').replace(/[^\w.-]+/g, '-').replace(/^[.-]+/, '') || 'app'
}

/** Chooses the user of the service: the current one, but never root unless it is named. */
export function userOf (user: string | undefined) {
  if (user === undefined) return userId() === 0 ? null : userName()
  return checkedForm('--user', /^([a-z_][\w.-]{0,30}|\d{1,9})$/i, 'the name or number of a user', user)
}

export function noUser (user: string | undefined) {
  if (user === undefined) return null
  throw misuse('--user', 'nothing with --scope user, where the service runs as its owner', JSON.stringify(user))
}

/** `text`: a port, an address with one, or the path of a Unix socket; ListenStream= reads it the same way */
function checkedSocket (text: string) {
  const [, host, port] = /^(?:([\d.]+|\[[\da-f:.]+\]):)?(\d{1,5})$/i.exec(text) ?? []
  const isPort = Number(port) >= 1 && Number(port) <= 65535
  const isHost = host === undefined || net.isIP(host.replace(/^\[|\]$/g, '')) > 0
  if ((isPort && isHost) || path.isAbsolute(text)) return text
  const expected = 'a port, an address such as 127.0.0.1:3000 or [::1]:3000, or an absolute path'
  throw misuse('--socket', expected, JSON.stringify(text))
}
