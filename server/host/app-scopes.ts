import { AsyncLocalStorage } from 'node:async_hooks'

export type AppScopes = ReturnType<typeof createAppScopes>
export type AppScope = ReturnType<AppScopes['open']>

/**
 * Knows of which app a part of this process is. What is run in the scope of an app, and whatever follows from that, is
 * of that app: its timers, promises, sockets, and the events of the processes that it starts. So an exception that
 * nobody catches there is the app's alone, and the process goes on. One of no app ends the process, as it always does.
 * A handler belongs to whoever calls it, not to whoever has made it: an event of one app, or a request of the admin
 * port, comes in the scope of that one, or in none. Where the host calls an app, it does so by `run`, `call` or `bind`;
 * where an app calls the host, and work of the host follows from that, by `outside`. `onFatal`: the process
 * ends by it; `onLateFault`: the app has faulted before, or is closed.
 */
export function createAppScopes (
  { onFatal = () => {}, onLateFault }: { onFatal?: (error: unknown) => void,
    onLateFault: (error: unknown, app: string) => void }
) {
  const scopes: AsyncLocalStorage<Scope | undefined> = new AsyncLocalStorage()
  process.on('uncaughtExceptionMonitor', claimFault)

  return {
    /** `hooks`: called once, in no scope; what follows in this scope is late */
    open (app: string, { onFault }: { onFault: (error: unknown) => void }) {
      const scope: Scope = { app, onFault }
      return {
        /** Runs work of the app. What it throws comes back to the caller. */
        run: <T>(work: () => T): T => scopes.run(scope, work),

        /**
         * Tells the app something. What it throws, or rejects with, is a fault of the app, and none of the caller's.
         */
        call (work: () => unknown) {
          try {
            const result = scopes.run(scope, work)
            if (result instanceof Promise) result.catch((error) => takeFault(scope, error))
          } catch (error) {
            takeFault(scope, error)
          }
        },

        /** @returns calls it in this scope, as `call` does */
        bind<Arguments extends unknown[]> (handler: (...args: Arguments) => unknown): (...args: Arguments) => void {
          return (...args) => this.call(() => handler(...args))
        },

        /** The app is closed: whatever is still thrown by what is left of it is late. */
        close () {
          scope.onFault = null
        }
      }
    },

    /** @returns the app whose part runs */
    current: (): string | null => scopes.getStore()?.app ?? null,

    /** Runs work of no app, whoever calls. */
    outside: <T>(work: () => T): T => scopes.run(undefined, work),

    close () {
      process.off('uncaughtExceptionMonitor', claimFault)
    }
  }

  /**
   * Hears of an exception before anybody does who could catch it. One of an app is caught by a listener that is there
   * for this one alone, so that Node goes on ending the process at any other.
   */
  function claimFault (error: unknown) {
    const scope = scopes.getStore()
    if (!scope) return onFatal(error)
    process.once('uncaughtException', () => {
      takeFault(scope, error)
      // Node 24 would have what it makes next be of this scope, such as a connection that somebody opens.
      scopes.enterWith(undefined)
    })
  }

  function takeFault (scope: Scope, error: unknown) {
    const { app, onFault } = scope
    scope.onFault = null
    scopes.run(undefined, () => onFault ? onFault(error) : onLateFault(error, app))
  }
}

type Scope = { app: string, onFault: ((error: unknown) => void) | null }
