import { constants } from 'node:os'
import { loadPosix } from '../system/posix.ts'
import { textIn } from '../system/proc.ts'
import type { SocketQuery } from '../../workers/protocol.ts'

const EACCES = -constants.errno.EACCES
/** What programs say of a port that they take for used: portend, which CherryPy has, among others. */
const SAYS_TAKEN = /\bport\b.*\bnot free\b|\balready in use\b|\bis in use\b/i
const FOUND_ITS_COPY =
  'the master has refused it no port, and other copies of it serve: it may have looked by itself, by a connection, whether its port is free. Tell it not to; the manual, Other programs, says how for CherryPy'
/**
 * What programs say of which only one may run, as they find the pid file, the lock or the socket of their other copy.
 */
const SAYS_ALONE =
  /\balready running\b|\banother (?:instance|process|copy)\b|\b(?:pid|lock) ?file\b|\b(?:is|already|database) locked\b|\bcould not (?:get|acquire) (?:the )?lock\b/i
const RUN_ALONE =
  'other copies of it run: if only one may, set --workers 1 and --rollout-order stop-first, so that the old one ends before the new one starts'
const FIRST_OF_ALL = 1024

/**
 * What may help a worker that has ended before it was ready, where that is about an address.
 * @param why as it has said itself
 * @param known `refused`: what the master could not bind for it; `note`: why it shares no sockets; `hasOthers`: copies
 * that serve
 */
export function bindHint (why: string,
  { refused, note, hasOthers }: { refused: { errno: number, inWords: () => string } | null, note?: string | null,
    hasOthers: boolean }): string | null
{
  if (refused?.errno === EACCES) return refused.inWords()
  if (hasOthers && SAYS_ALONE.test(why)) return RUN_ALONE
  if (!SAYS_TAKEN.test(why)) return null
  return refused?.inWords() ?? note ?? (hasOthers ? FOUND_ITS_COPY : null)
}

/**
 * `query`: that nobody here may bind; `entry`: the file of the program that has asked. Returns how it could be allowed,
 * or nothing.
 */
export function rightsHint ({ port }: Pick<SocketQuery, 'port'>, entry?: string): string {
  const first = Number(textIn('/proc/sys/net/ipv4/ip_unprivileged_port_start') || FIRST_OF_ALL)
  if (!port || port < 0 || port >= first) return ''
  // Where the master is kept from more rights itself, those of its file do not count either.
  const byFile = /^NoNewPrivs:\s*1$/m.test(textIn('/proc/self/status'))
    ? ''
    : `"setcap cap_net_bind_service=+ep ${process.execPath}", `
  const own = entry !== undefined && (loadPosix()?.attributeOf(entry, 'security.capability') ?? null) !== null
    ? `. The capability of ${entry} does not count: without the rights of root, the kernel lets a program be heard only if it can get no more rights (no_new_privs)`
    : ''
  return `: the master binds it, and may not bind ports below ${first}. Let it by ${byFile}CAP_NET_BIND_SERVICE in AmbientCapabilities= and CapabilityBoundingSet= of its systemd unit, by a socket unit, or by "sysctl net.ipv4.ip_unprivileged_port_start=${port}"${own}`
}
