"""Small models by MongoEngine and by Beanie: models.py URI, for models of drivers.py."""

import asyncio
import datetime
import json
import sys

import beanie
import mongoengine
import pymongo

URI = sys.argv[1]
NAMES = ["apple", "bread", "cheese"]


class Maker(mongoengine.Document):
    name = mongoengine.StringField(required=True, unique=True)


class Size(mongoengine.EmbeddedDocument):
    width = mongoengine.FloatField(min_value=0)


class Item(mongoengine.Document):
    name = mongoengine.StringField(required=True, max_length=20)
    price = mongoengine.DecimalField(precision=2)
    tags = mongoengine.ListField(mongoengine.StringField())
    size = mongoengine.EmbeddedDocumentField(Size)
    maker = mongoengine.ReferenceField(Maker, reverse_delete_rule=mongoengine.CASCADE)
    made = mongoengine.DateTimeField(default=datetime.datetime.now)
    photo = mongoengine.FileField()
    meta = {"indexes": ["tags", ("name", "-price"), "$name"]}


def engine():
    client = mongoengine.connect("mongoengine", host=URI)
    client.drop_database("mongoengine")
    maker = Maker(name="Ada").save()
    for number, name in enumerate(NAMES):
        Item(name=name, price=number + 0.5, tags=[name, "food"], size=Size(width=number), maker=maker).save()
    told = {"ordered": [item.name for item in Item.objects(tags="food").order_by("-price")]}
    Item.objects(name="apple").update_one(push__tags="fruit", inc__size__width=2)
    apple = Item.objects.get(name="apple")
    told["updated"] = [apple.tags, apple.size.width, str(apple.price), apple.maker.name]
    told["sum"] = float(Item.objects.sum("price"))
    told["text"] = [item.name for item in Item.objects.search_text("bread")]
    told["grouped"] = len(list(Item.objects.aggregate([{"$unwind": "$tags"}, {"$group": {"_id": "$tags"}}])))
    apple.photo.put(b"a photo" * 100_000)
    apple.save()
    told["photo"] = len(Item.objects.get(name="apple").photo.read())
    try:
        Maker(name="Ada").save()
    except mongoengine.NotUniqueError:
        told["unique"] = True
    maker.delete()
    told["cascade"] = Item.objects.count()
    return told


class Person(beanie.Document):
    name: str
    age: int = 0
    born: datetime.date | None = None

    class Settings:
        name = "people"
        indexes = [pymongo.IndexModel([("name", 1)], unique=True)]
        use_revision = True
        use_state_management = True


class Book(beanie.Document):
    title: str
    writer: beanie.Link[Person]


async def bean():
    client = pymongo.AsyncMongoClient(URI)
    await client.drop_database("beanie")
    await beanie.init_beanie(database=client.beanie, document_models=[Person, Book])
    people = [Person(name=name, age=10 * number) for number, name in enumerate(["Ada", "Bo", "Cy"])]
    await Person.insert_many(people)
    told = {"found": [person.name for person in await Person.find(Person.age >= 10).sort(-Person.age).to_list()]}
    ada = await Person.find_one(Person.name == "Ada")
    ada.age = 36
    await ada.save_changes()
    told["average"] = await Person.find_all().avg(Person.age)
    await Person.find(Person.name == "Bo").inc({Person.age: 5})
    await Person.find_one(Person.name == "Di").upsert({"$set": {"age": 1}}, on_insert=Person(name="Di", age=2))
    told["ages"] = sorted([person.age async for person in Person.find_all()])
    await Book(title="Notes", writer=ada).insert()
    told["linked"] = (await Book.find_one(Book.writer.name == "Ada", fetch_links=True)).writer.age
    try:
        await Person(name="Ada").insert()
    except pymongo.errors.DuplicateKeyError:
        told["unique"] = True
    async with client.start_session() as session:
        async with await session.start_transaction():
            await Person.find(Person.age > 0).delete(session=session)
            told["inside"] = await Person.find_all(session=session).count()
            await session.abort_transaction()
    told["after"] = await Person.count()
    return told


print(json.dumps({"mongoengine": engine(), "beanie": asyncio.run(bean())}))
