import 'reflect-metadata'
import { Controller, Get, Module } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'

@Controller()
class AppController {
  @Get()
  hello (): string {
    return `hello from nest, pid ${process.pid}`
  }
}

@Module({ controllers: [AppController] })
class AppModule {}

async function bootstrap () {
  const app = await NestFactory.create(AppModule)
  app.enableShutdownHooks()
  await app.listen(process.env.PORT ?? 3000)
}

bootstrap()
