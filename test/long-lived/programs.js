import { joinDocument } from './clients/hocuspocus.js'
import { openMcpSession } from './clients/mcp.js'
import { openSocketIo } from './clients/socket-io.js'
import { openTerminal } from './clients/wetty.js'

/**
 * What a client has in the memory of the worker that it has met.
 * @typedef {object} Session
 * @property {() => Promise<void>} ask rejects if what the session knows is not there, or nothing answers
 * @property {() => void} close
 *
 * @typedef {{ port: number, folder: string, number: number, onLost: (reason: string) => void }} Joining `onLost`: the session is over, and its client has to begin anew
 */
/**
 * @typedef {object} SessionProgram
 * @property {(joining: Joining) => Promise<Session>} join
 * @property {string[]} stickyBy flags of `clusterdeck start` that keep its sessions with a worker; none: none of its answers tells a session
 */

/** @type {(import('../apps/programs.js').Program & SessionProgram)[]} */
export const PROGRAMS = [
  {
    name: 'mcp-everything',
    packages: { '@modelcontextprotocol/server-everything': '2026.8.31', '@modelcontextprotocol/sdk': '1.32.2' },
    entry: 'node_modules/.bin/mcp-server-everything',
    args: () => ['streamableHttp'],
    stickyBy: ['--dispatch', 'sticky', '--sticky-by-header', 'mcp-session-id'],
    join: openMcpSession
  },
  {
    name: 'socket.io polling',
    packages: { 'socket.io': '4', 'socket.io-client': '4' },
    entry: 'socket-io.cjs',
    stickyBy: ['--dispatch', 'sticky', '--sticky-by-query', 'sid'],
    join: (joining) => openSocketIo(joining, ['polling'])
  },
  {
    name: 'socket.io',
    packages: { 'socket.io': '4', 'socket.io-client': '4' },
    entry: 'socket-io.cjs',
    stickyBy: ['--dispatch', 'sticky', '--sticky-by-query', 'sid'],
    join: (joining) => openSocketIo(joining, ['polling', 'websocket'])
  },
  {
    name: 'hocuspocus',
    packages: { '@hocuspocus/server': '4.7.0', '@hocuspocus/provider': '4.8.0', yjs: '13', ws: '8' },
    entry: 'hocuspocus.mjs',
    stickyBy: [],
    join: joinDocument
  },
  {
    name: 'wetty',
    packages: { wetty: '3.2.0', 'socket.io-client': '4' },
    compiles: ['node-pty'],
    entry: 'node_modules/.bin/wetty',
    args: ({ port }) => ['--port', String(port), '--base', '/', '--command', '/bin/sh', '--log-level', 'error'],
    stickyBy: ['--dispatch', 'sticky', '--sticky-by-query', 'sid'],
    join: openTerminal
  }
]
