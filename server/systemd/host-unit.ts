import { STORE_LINES, WATCHDOG_SECONDS, type Scope, type UnitFile } from './unit.ts'
import { quotedProgram, quotedWord } from './unit-quoting.ts'

/** The host is ready after 20 s at the latest, but histories are opened before that. This is systemd's own default. */
const START_SECONDS = 90
/** Each app drains for as long as its own options say. */
const STOP_SECONDS = 300

/**
 * The unit of a host, which brings back the apps of its user: systemd.service(5). Apps lie anywhere, so it has no
 * sandbox of the file system.
 * @throws {import('../errors.ts').DeckError} invalid-config: a value that no unit file can hold
 */
export function hostUnitFiles ({ scope, name, node, script, options, user, folder }: {
  scope: Scope,
  /** of the unit, without its suffix */
  name: string,
  node: string,
  /** the command line's own file */
  script: string,
  /** of `host` */
  options: string[],
  /** null: that of a user's own manager */
  user: string | null,
  /** of the host; null: the one that its user has by default */
  folder: string | null
}): UnitFile[] {
  const words = [quotedProgram(node), ...[script, 'host', ...options].map((text) => quotedWord('host', text))]
  const text = `[Unit]
Description=${name}, the host of all apps that "clusterdeck ls" lists
${scope === 'system' ? 'After=network.target\n' : ''}
[Service]
# A reload is a rolling deploy of each app.
Type=notify
ExecReload=/bin/kill -HUP $MAINPID
# The main process is the keeper; the master, which is its child, knows how things are.
NotifyAccess=all
ExecStart=${words.join(' ')}
WorkingDirectory=~
${folder === null ? '' : `Environment=${quotedProgram(`CLUSTERDECK_HOST_DIR=${folder}`)}\n`}${
    user === null ? '' : `User=${user}\n`
  }WatchdogSec=${WATCHDOG_SECONDS}
TimeoutStartSec=${START_SECONDS}
TimeoutStopSec=${STOP_SECONDS}
# Only the main process hears of a stop first: it lets the workers answer what they have.
KillMode=mixed
${STORE_LINES}
Restart=on-failure
RestartSec=1
# 2: the command line is wrong, which another start does not mend.
RestartPreventExitStatus=2
# A worker that runs out of memory is replaced; the others go on.
OOMPolicy=continue
# Each worker has a control group of its own where limits.memoryBytes or limits.cpus are set.
Delegate=yes
LimitNOFILE=524288
NoNewPrivileges=yes
UMask=0077

[Install]
WantedBy=${scope === 'system' ? 'multi-user' : 'default'}.target
`
  return [{ file: `${name}.service`, text }]
}
