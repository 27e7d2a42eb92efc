import { joinDocument } from './clients/hocuspocus.ts'
import { openMcpSession } from './clients/mcp.ts'
import { openSocketIo } from './clients/socket-io.ts'
import { openTerminal } from './clients/wetty.ts'
import type { Program } from '../apps/programs.ts'

/** What a client has in the memory of the worker that it has met. */
export type Session = {
  /** rejects if what the session knows is not there, or nothing answers */
  ask: () => Promise<void>,
  close: () => void
}
/** `onLost`: the session is over, and its client has to begin anew */
export type Joining = { port: number, folder: string, number: number, onLost: (reason: string) => void }
type SessionProgram = {
  join: (joining: Joining) => Promise<Session>,
  /** flags of `clusterdeck start` that keep its sessions with a worker; none: none of its answers tells a session */
  stickyBy: string[]
}

export const PROGRAMS: (Program & SessionProgram)[] = [{ name: 'mcp-everything',
  packages: { '@modelcontextprotocol/server-everything': '2026.8.31', '@modelcontextprotocol/sdk': '1.32.2' },
  entry: 'node_modules/.bin/mcp-server-everything', args: () => ['streamableHttp'],
  stickyBy: ['--dispatch', 'sticky', '--sticky-by-header', 'mcp-session-id'], join: openMcpSession }, {
  name: 'socket.io polling',
  packages: { 'socket.io': '4', 'socket.io-client': '4' },
  entry: 'socket-io.cjs',
  stickyBy: ['--dispatch', 'sticky', '--sticky-by-query', 'sid'],
  join: (joining) => openSocketIo(joining, ['polling'])
}, { name: 'socket.io', packages: { 'socket.io': '4', 'socket.io-client': '4' }, entry: 'socket-io.cjs',
  stickyBy: ['--dispatch', 'sticky', '--sticky-by-query', 'sid'],
  join: (joining) => openSocketIo(joining, ['polling', 'websocket']) }, { name: 'hocuspocus',
  packages: { '@hocuspocus/server': '4.7.0', '@hocuspocus/provider': '4.8.0', yjs: '13', ws: '8' },
  entry: 'hocuspocus.mjs', stickyBy: [], join: joinDocument }, { name: 'wetty',
  packages: { wetty: '3.2.0', 'socket.io-client': '4' }, compiles: ['node-pty'], entry: 'node_modules/.bin/wetty',
  args: ({ port }) => ['--port', String(port), '--base', '/', '--command', '/bin/sh', '--log-level', 'error'],
  stickyBy: ['--dispatch', 'sticky', '--sticky-by-query', 'sid'], join: openTerminal }]
