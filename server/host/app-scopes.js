import { AsyncLocalStorage } from 'node:async_hooks'

/** @typedef {ReturnType<typeof createAppScopes>} AppScopes */
/** @typedef {ReturnType<AppScopes['open']>} AppScope */

/**
 * Knows of which app a part of this process is. What is run in the scope of an app, and whatever follows from that, is of
 * that app: its timers, promises, sockets, and the events of the processes that it starts. So an exception that nobody
 * catches there is the app's alone, and the process goes on. One of no app ends the process, as it always does.
 *
 * A handler belongs to whoever calls it, not to whoever has made it: an event of one app, or a request of the admin port,
 * comes in the scope of that one, or in none. Where the host calls an app, it does so by `run`, `call` or `bind`; where an
 * app calls the host, and work of the host follows from that, by `outside`.
 * @param {{ onFatal?: (error: unknown) => void, onLateFault: (error: unknown, app: string) => void }} hooks  `onFatal`: the process ends by it;
 *   `onLateFault`: the app has faulted before, or is closed
 */
export function createAppScopes ({ onFatal = () => {}, onLateFault }) {
  /** @type {AsyncLocalStorage<Scope | undefined>} */
  const scopes = new AsyncLocalStorage()
  process.on('uncaughtExceptionMonitor', claimFault)

  return {
    /**
     * @param {string} app @param {{ onFault: (error: unknown) => void }} hooks  called once, in no scope; what follows in this scope is late
     */
    open (app, { onFault }) {
      /** @type {Scope} */
      const scope = { app, onFault }
      return {
        /**
         * Runs work of the app. What it throws comes back to the caller.
         * @template T @param {() => T} work @returns {T}
         */
        run: (work) => scopes.run(scope, work),

        /**
         * Tells the app something. What it throws, or rejects with, is a fault of the app, and none of the caller's.
         * @param {() => unknown} work
         */
        call (work) {
          try {
            const result = scopes.run(scope, work)
            if (result instanceof Promise) result.catch((error) => takeFault(scope, error))
          } catch (error) {
            takeFault(scope, error)
          }
        },

        /**
         * @template {any[]} Arguments
         * @param {(...args: Arguments) => unknown} handler @returns {(...args: Arguments) => void} calls it in this scope, as `call` does
         */
        bind (handler) {
          return (...args) => this.call(() => handler(...args))
        },

        /** The app is closed: whatever is still thrown by what is left of it is late. */
        close () { scope.onFault = null }
      }
    },

    /** @returns {string | null} the app whose part runs */
    current: () => scopes.getStore()?.app ?? null,

    /** Runs work of no app, whoever calls. @template T @param {() => T} work @returns {T} */
    outside: (work) => scopes.run(undefined, work),

    close () { process.off('uncaughtExceptionMonitor', claimFault) }
  }

  /**
   * Hears of an exception before anybody does who could catch it. One of an app is caught by a listener that is there for
   * this one alone, so that Node goes on ending the process at any other.
   * @param {unknown} error
   */
  function claimFault (error) {
    const scope = scopes.getStore()
    if (!scope) return onFatal(error)
    process.once('uncaughtException', () => {
      takeFault(scope, error)
      // Node 24 would have what it makes next be of this scope, such as a connection that somebody opens.
      scopes.enterWith(undefined)
    })
  }

  /** @param {Scope} scope @param {unknown} error */
  function takeFault (scope, error) {
    const { app, onFault } = scope
    scope.onFault = null
    scopes.run(undefined, () => onFault ? onFault(error) : onLateFault(error, app))
  }
}

/** @typedef {{ app: string, onFault: ((error: unknown) => void) | null }} Scope */
