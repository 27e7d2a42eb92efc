import { TYPED_VARIABLE } from '../run-on.js'
import { asNamed } from '../system/working-folder.ts'
import { listedPath, quotedProgram, quotedWord, wholeLine } from './unit-quoting.ts'
import type { AppNode } from '../launch/launch.ts'

/** Unit files for systemd, as systemd.service(5), systemd.exec(5) and systemd.socket(5) have them. */

/** What a stop takes beside its workers. */
const STOP_SLACK_S = 15
/** What a start takes beside its workers. */
const START_SLACK_S = 30
/** systemd's own default; who configures more patience than that gets more. */
const LEAST_START_S = 90
/** Some sockets for each app, and one for each worker of a program that is no Node program. */
export const STORE_LINES =
  `# Connections wait at the sockets of the apps while the service starts again. Not "yes": then they would wait after a stop, too.
FileDescriptorStoreMax=16384
FileDescriptorStorePreserve=restart`
/** A master that has died is followed by the next one sooner than this. */
export const WATCHDOG_SECONDS = 30
const HOMES = ['/home', '/root', '/run/user']

/** whose service manager: the machine's, or one user's own */
export type Scope = 'system' | 'user'
export type UnitFile = { file: string, text: string }
type UnitFacts = {
  scope: Scope,
  /** of the units, without their suffix */
  name: string,
  node: string,
  /** the command line's own file */
  script: string,
  /** the Node on which the app runs unless it asks for another; null: `node` */
  typedNode?: string | null,
  /** null: the options or the config file say what to start */
  entry: string | null,
  /** of `start` */
  options: string[],
  /** the app's own */
  args: string[],
  cwd: string,
  /** null: one that systemd makes up for as long as the service runs; of a user's own manager, that user */
  user: string | null,
  /** null: one that systemd makes */
  dataDir: string | null,
  /** what it is to listen on for the app, as ListenStream= has it */
  sockets: string[],
  /** other services that are to be started first */
  dependsOn?: readonly string[],
  notifyReload: boolean,
  config: { ready: { timeoutMs: number }, drain: { deadlineMs: number }, stop: { termGraceMs: number },
    appNode?: AppNode }
}

/**
 * Returns the unit of the service, and that of its sockets where it has any.
 * @throws {import('../errors.ts').DeckError} invalid-config: a value that no unit file can hold
 */
export function unitFiles (facts: UnitFacts): UnitFile[] {
  const service = { file: `${facts.name}.service`, text: serviceUnit(facts) }
  return facts.sockets.length === 0 ? [service] : [service, { file: `${facts.name}.socket`, text: socketUnit(facts) }]
}

/** @returns all of them in one text, each below its name where there are several */
export function joinUnits (files: UnitFile[]): string {
  return files.length === 1 ? files[0].text : files.map(({ file, text }) => `# ${file}\n${text}`).join('\n')
}

function serviceUnit (
  { scope, name, node, typedNode = null, script, entry, options, args, cwd, user, dataDir, sockets, dependsOn = [],
    notifyReload, config: { ready, drain, stop, appNode } }: UnitFacts
) {
  const stopSeconds = Math.ceil((drain.deadlineMs + stop.termGraceMs) / 1000) + STOP_SLACK_S
  const startSeconds = Math.max(LEAST_START_S, Math.ceil(ready.timeoutMs / 1000) + START_SLACK_S)
  const words = [
    quotedProgram(node),
    ...[script, 'start', ...(entry === null ? [] : [entry]), ...options].map((text) => quotedWord('start', text)),
    // %S: /var/lib, or the user's own place under a manager of theirs.
    ...(dataDir === null ? ['--data-dir', `%S/${name}`] : ['--data-dir', quotedWord('--data-dir', dataDir)]),
    ...(args.length > 0 ? ['--', ...args.map((text) => quotedWord('an argument of the app', text))] : [])
  ]
  return `[Unit]
Description=${name}, run by clusterdeck
${scope === 'system' ? 'After=network.target\n' : ''}${
    sockets.length > 0
      ? `# Whoever starts the service gets its sockets too.\nRequires=${name}.socket\nAfter=${name}.socket\n`
      : ''
  }${dependsOn.length > 0 ? afterOthers(dependsOn.map((each) => `${each}.service`).join(' ')) : ''}
[Service]
${
    notifyReload
      ? '# Needs systemd 253. A reload is a rolling deploy, and ends when that has ended.\nType=notify-reload'
      : '# A reload is a rolling deploy.\nType=notify\nExecReload=/bin/kill -HUP $MAINPID'
  }
# The main process is the keeper; the master, which is its child, knows how things are.
NotifyAccess=all
ExecStart=${words.join(' ')}
WorkingDirectory=${wholeLine('the working folder', cwd)}
${
    asNamed(cwd).real === cwd
      ? ''
      : `# By a link, which each deploy follows anew.\nEnvironment=${quotedProgram(`PWD=${cwd}`)}\n`
  }${scope === 'system' ? ownershipLines({ name, user, dataDir }) : ''}${
    typedNode === null
      ? ''
      : `# The Node of the app, unless it asks for another one.\nEnvironment=${
        quotedProgram(`${TYPED_VARIABLE}=${typedNode}`)
      }\n`
  }WatchdogSec=${WATCHDOG_SECONDS}
TimeoutStartSec=${startSeconds}
# drain.deadlineMs and stop.termGraceMs, and what is left to do then.
TimeoutStopSec=${stopSeconds}
# Only the main process hears of a stop first: it lets the workers answer what they have.
KillMode=mixed
${STORE_LINES}
Restart=on-failure
RestartSec=1
# 2: the command line or the configuration is wrong, which another start does not mend.
RestartPreventExitStatus=2
# A worker that runs out of memory is replaced; the others go on.
OOMPolicy=continue
# Each worker has a control group of its own where limits.memoryBytes or limits.cpus are set. Not ProtectControlGroups=: it would forbid that.
Delegate=yes
LimitNOFILE=524288

NoNewPrivileges=yes
${
    scope === 'system'
      ? sandboxLines([node, appNode?.file ?? '', script, entry ?? '', cwd, dataDir ?? ''])
      : '# What needs more than a user may do, such as ProtectSystem=, is for services of the system.\n'
  }# AF_NETLINK: os.networkInterfaces() asks the kernel by it.
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallErrorNumber=EPERM
# A Unix socket that the app binds itself is its user's alone; one of a socket unit has SocketMode=.
UMask=0077
# Not MemoryDenyWriteExecute=: V8 compiles JavaScript to machine code at run time.

[Install]
WantedBy=${scope === 'system' ? 'multi-user' : 'default'}.target
${sockets.length > 0 ? `Also=${name}.socket\n` : ''}`
}

function afterOthers (services: string) {
  return `# Where these are installed: they are ready first.\nWants=${services}\nAfter=${services}\n`
}

function ownershipLines ({ name, user, dataDir }: Pick<UnitFacts, 'name' | 'user' | 'dataDir'>) {
  return `${user === null ? '# Name one by User= if the app needs to own files.\nDynamicUser=yes' : `User=${user}`}
${
    dataDir === null
      ? `StateDirectory=${name}\nStateDirectoryMode=0700`
      : `ReadWritePaths=${listedPath('--data-dir', dataDir)}`
  }
`
}

/** `paths`: that have to be seen from inside */
function sandboxLines (paths: string[]) {
  return `CapabilityBoundingSet=
ProtectSystem=strict
${homeLine(paths)}
PrivateTmp=yes
PrivateDevices=yes
ProtectClock=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectProc=invisible
RemoveIPC=yes
`
}

function socketUnit ({ name, sockets }: UnitFacts) {
  return `[Unit]
Description=Sockets of ${name}

[Socket]
${sockets.map((socket) => `ListenStream=${wholeLine('--socket', socket)}\n`).join('')}
[Install]
WantedBy=sockets.target
`
}

/** An app that lies in a home folder has to be seen. */
function homeLine (paths: string[]) {
  const isAtHome = paths.some((each) => HOMES.some((home) => each === home || each.startsWith(`${home}/`)))
  return isAtHome ? '# The app, or what it needs, lies there.\nProtectHome=read-only' : 'ProtectHome=yes'
}
