// SPDX-License-Identifier: Apache-2.0
package servers.cxf;

import jakarta.ws.rs.Consumes;
import jakarta.ws.rs.DELETE;
import jakarta.ws.rs.GET;
import jakarta.ws.rs.POST;
import jakarta.ws.rs.PUT;
import jakarta.ws.rs.Path;
import jakarta.ws.rs.PathParam;
import jakarta.ws.rs.Produces;
import jakarta.ws.rs.core.Context;
import jakarta.ws.rs.core.MediaType;
import jakarta.ws.rs.core.Response;
import jakarta.ws.rs.core.UriInfo;

/** Customers by id; JSON unless the client asks for XML. */
@Path("/customerservice/customers")
@Produces({MediaType.APPLICATION_JSON, MediaType.APPLICATION_XML})
@Consumes({MediaType.APPLICATION_JSON, MediaType.APPLICATION_XML})
public class CustomerService {

    private final Customers customers;

    CustomerService(Customers customers) {
        this.customers = customers;
    }

    @GET
    @Path("/{id}")
    public Response get(@PathParam("id") long id) {
        return entityOrNotFound(customers.find(id));
    }

    /** The id is the server's choice, whatever the body says. */
    @POST
    public Response post(Customer customer, @Context UriInfo uri) {
        if (customer == null) {
            return badRequest();
        }
        Customer created = customers.create(customer.getName());
        return Response.created(uri.getAbsolutePathBuilder().path(Long.toString(created.getId())).build())
                .entity(created)
                .build();
    }

    /** The id is that of the path, whatever the body says. */
    @PUT
    @Path("/{id}")
    public Response put(@PathParam("id") long id, Customer customer) {
        return customer == null ? badRequest() : entityOrNotFound(customers.rename(id, customer.getName()));
    }

    @DELETE
    @Path("/{id}")
    public Response delete(@PathParam("id") long id) {
        return customers.delete(id) ? Response.ok().build() : notFound();
    }

    private static Response entityOrNotFound(Customer customer) {
        return customer == null ? notFound() : Response.ok(customer).build();
    }

    private static Response badRequest() {
        return Response.status(Response.Status.BAD_REQUEST).build();
    }

    private static Response notFound() {
        return Response.status(Response.Status.NOT_FOUND).build();
    }
}
