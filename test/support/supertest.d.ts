// Its types come in a package of their own, which is not worth a dependency here.
declare module 'supertest'
